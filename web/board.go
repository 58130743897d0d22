package web

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"earshot/ent/db"
	"earshot/internal/feedback"
	"earshot/internal/page"
	"earshot/web/markup"
)

const (
	// postsOnPage fills a few screens of a phone.
	postsOnPage = 20
	maxSearch   = page.MaxSearch
)

type boardContent struct {
	pager
	Path, Name, Description, Query string
	// Filtered is true if some posts are left out or the order is not the default.
	Filtered              bool
	Sorts, Statuses, Tags []choice
	Posts                 []shownPost
	// New is the path of the form for a new post; empty if the board takes none.
	New string
}

// choice is one option of a form.
type choice struct {
	Value, Title string
	Chosen       bool
}

// board lists a board's posts. The widget's frame is narrow, so it has only a search, and short rows.
func (p *Pages) board(ctx context.Context, v *visit) (*answer, error) {
	b, err := p.onBoard(ctx, v)
	if err != nil {
		return nil, err
	}
	content := boardContent{Path: v.boardAt(b), Name: b.Name}
	var tags []*db.Tag
	if !v.framed() {
		content.Description, tags = b.Description, v.tags
	}
	asked := v.asked(&content, tags)
	if v.framed() {
		content.Sorts, content.Statuses = nil, nil
	}
	posts, err := p.Feedback.Posts(ctx, b.ID, asked)
	if err != nil {
		return nil, err
	}
	for _, one := range posts.Items {
		shown := showPost(content.Path, one.Post)
		if !v.framed() {
			shown.Excerpt, shown.Tags = markup.Excerpt(one.BodyText), v.tagged(one)
		}
		content.Posts = append(content.Posts, shown)
	}
	content.pager = v.pager(posts.NextCursor)
	if p.open(v) && feedback.NoPost(b) == nil {
		content.New = content.Path + "/-/new"
	}
	of := v.siteOf(b, "posts")
	of.Canonical, of.Hidden, of.Content = v.base+content.Path, len(v.query) > 0, content
	return v.found("board", of)
}

// asked reads the filter form from the query and fills it in again. It ignores invalid options.
func (v *visit) asked(content *boardContent, tags []*db.Tag) feedback.PostQuery {
	asked := feedback.PostQuery{Query: v.listed(postsOnPage)}
	var sorts []string
	if q := strings.TrimSpace(cleaned(v.query.Get("q"))); q != "" {
		content.Query, asked.Q = q, &q
		sorts = []string{"relevance"}
	}
	sorts = append(sorts, "newest", "votes", "active")
	sort := v.query.Get("sort")
	if !slices.Contains(sorts, sort) {
		sort = sorts[0]
	}
	asked.Sort = &sort
	for _, s := range sorts {
		shown := choice{s, v.words.Text("sort." + s), s == sort}
		if s == sorts[0] {
			shown.Value = "" // the default stays out of addresses, because it differs with a search text
		}
		content.Sorts = append(content.Sorts, shown)
	}
	content.Statuses, asked.Statuses = choose(v.query["status"], feedback.Statuses, func(s feedback.Status) (value, title string) {
		return string(s), v.words.Text("status." + string(s))
	})
	// Addresses contain tag ids, because names change.
	content.Tags, asked.TagIDs = choose(v.query["tag"], byName(tags), func(t *db.Tag) (value, title string) {
		return t.ID.String(), t.Name
	})
	content.Filtered = asked.Q != nil || sort != sorts[0] || asked.Statuses != nil || asked.TagIDs != nil
	return asked
}

// byName sorts the tags by name.
func byName(tags []*db.Tag) []*db.Tag {
	return slices.SortedFunc(slices.Values(tags), func(a, b *db.Tag) int { return strings.Compare(a.NameKey, b.NameKey) })
}

// maxChosen bounds the options of one kind. The list has the same bound.
const maxChosen = 50

// choose marks the requested options and returns their values, or nil if none was requested.
func choose[T any](asked []string, from []T, of func(T) (value, title string)) ([]choice, *[]string) {
	var choices []choice
	var chosen []string
	for _, one := range from {
		value, title := of(one)
		is := slices.Contains(asked, value) && len(chosen) < maxChosen
		if is {
			chosen = append(chosen, value)
		}
		choices = append(choices, choice{value, title, is})
	}
	if chosen == nil {
		return choices, nil
	}
	return choices, &chosen
}

// cleaned returns the part of a typed text that the search accepts.
func cleaned(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == 0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if characters := []rune(text); len(characters) > maxSearch {
		return string(characters[:maxSearch])
	}
	return text
}

type roadmapContent struct{ Columns []column }

type column struct {
	Status string
	Posts  []shownPost
	// More links to all posts of the status.
	More string
}

// roadmap shows the posts that are planned, in progress and shipped.
func (p *Pages) roadmap(ctx context.Context, v *visit) (*answer, error) {
	b, err := p.onBoard(ctx, v)
	if err != nil {
		return nil, err
	}
	found, err := p.Feedback.Roadmap(ctx, b)
	if err != nil {
		return nil, err
	}
	at := boardPath(v.org, b)
	var content roadmapContent
	for i, status := range feedback.RoadmapStatuses {
		c := column{Status: string(status)}
		for _, one := range found[i] {
			c.Posts = append(c.Posts, showPost(at, one))
		}
		if len(c.Posts) > 0 {
			c.More = at + "?status=" + c.Status
		}
		content.Columns = append(content.Columns, c)
	}
	of := v.boardSite(b, "roadmap")
	of.Title = v.words.Text("roadmap") + " – " + of.Title
	of.Canonical, of.Content = v.base+at+"/-/roadmap", content
	return v.page(http.StatusOK, "roadmap", of)
}
