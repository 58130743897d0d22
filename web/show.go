package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"earshot/ent/db"
	"earshot/internal/feedback"
	"earshot/internal/page"
)

// workspacePath is the path of the organization's page.
func workspacePath(o *db.Organization) string {
	if o.Slug != nil {
		return Root + *o.Slug
	}
	return Root + o.ID.String()
}

func boardPath(o *db.Organization, b *db.Board) string { return workspacePath(o) + "/" + b.Slug }

// site returns the common parts of an organization's pages.
func (v *visit) site() view {
	home := workspacePath(v.org)
	of := view{Home: home, Site: v.org.Name, Title: v.org.Name}
	if v.org.Color != nil {
		of.Colors = colorsPath(*v.org.Color)
	}
	if v.logo != nil {
		of.Logo = home + "/-/logo?v=" + v.logo.UTC().Format("20060102150405.000000")
	}
	return of
}

// boardSite returns the common parts of a board's pages.
func (v *visit) boardSite(b *db.Board, current string) view {
	of := v.site()
	at := boardPath(v.org, b)
	of.Board, of.Title = b.Name, b.Name+" – "+v.org.Name
	of.Description = b.Description
	of.Image = v.base + at + "/-/image.png"
	add := func(name, path string) {
		of.Views = append(of.Views, link{Path: at + path, Title: v.words.Text(name), Current: name == current})
	}
	add("posts", "")
	if b.ShowRoadmap {
		add("roadmap", "/-/roadmap")
	}
	if b.ShowChangelog {
		add("changelog", "/-/changelog")
		of.Feed = at + "/-/changelog.atom"
	}
	return of
}

// pager holds the links to other pages of a list.
type pager struct{ First, Next string }

func (v *visit) pager(next *string) pager {
	var out pager
	to := url.Values{}
	for name, values := range v.query {
		if name != "cursor" {
			to[name] = values
		}
	}
	if v.query.Has("cursor") {
		out.First = v.at
		if len(to) > 0 {
			out.First += "?" + to.Encode()
		}
	}
	if next != nil {
		to.Set("cursor", *next)
		out.Next = v.at + "?" + to.Encode()
	}
	return out
}

// listed returns the query for the part of a list that an address asks for.
func (v *visit) listed(size int) page.Query {
	q := page.Query{Limit: &size, Memory: v.memory}
	if cursor := v.query.Get("cursor"); cursor != "" {
		q.Cursor = &cursor
	}
	return q
}

// shownPost is a post in a list.
type shownPost struct {
	Path, Title, Excerpt, Status string
	Votes, Comments              int
	Tags                         []*db.Tag
	CreatedAt                    time.Time
}

func showPost(at string, p *db.Post) shownPost {
	return shownPost{
		Path: at + "/" + p.Slug, Title: p.Title, Status: string(p.Status), Votes: p.VoteCount, Comments: p.CommentCount,
		CreatedAt: p.CreatedAt,
	}
}

// tagged returns the tags of a post. A tag that was just created may be missing for a moment.
func (v *visit) tagged(post *feedback.Post) (tags []*db.Tag) {
	for _, id := range post.TagIDs {
		if i := slices.IndexFunc(v.tags, func(t *db.Tag) bool { return t.ID == id }); i >= 0 {
			tags = append(tags, v.tags[i])
		}
	}
	return tags
}

type workspaceContent struct {
	pager
	Boards []shownBoard
}

type shownBoard struct{ Path, Name, Description string }

const boardsOnPage = 50

// workspace lists an organization's public boards. Without a public board, the page does not exist.
func (p *Pages) workspace(ctx context.Context, v *visit) (*answer, error) {
	boards, err := p.Feedback.PublicBoards(ctx, v.listed(boardsOnPage))
	if err != nil {
		return nil, err
	}
	if len(boards.Items) == 0 {
		return nothing(ctx, v)
	}
	of := v.site()
	content := workspaceContent{pager: v.pager(boards.NextCursor)}
	for _, b := range boards.Items {
		content.Boards = append(content.Boards, shownBoard{boardPath(v.org, b), b.Name, b.Description})
	}
	of.Canonical, of.Image, of.Hidden = v.base+of.Home, v.base+of.Home+"/-/image.png", v.query.Has("cursor")
	of.Content = content
	return v.found("workspace", of)
}

// logo serves the organization's logo.
func (p *Pages) logo(ctx context.Context, _ *visit) (*answer, error) {
	if shows, err := p.Feedback.HasPublicBoard(ctx); err != nil || !shows {
		return nothingOr(err)
	}
	logo, err := p.Access.Logo(ctx)
	if err != nil || logo == nil {
		return nothingOr(err)
	}
	a := newAnswer(http.StatusOK, logo.MediaType, logo.Content)
	a.maxAge = 5 * time.Minute
	return a, nil
}

func nothingOr(err error) (*answer, error) {
	if err != nil {
		return nil, err
	}
	return nothing(context.Background(), nil)
}
