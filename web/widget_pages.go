package web

import (
	"context"

	"earshot/ent/db"
	"earshot/internal/page"
)

// frameView is the data of the frame's layout.
type frameView struct {
	// Origins are the origins that may embed the page.
	Origins []string
	// Board is the path of the whole board, which opens in a window of its own.
	Board string
	// Back is the path from a notice to the previous page; empty means no link.
	Back string
	// Newest is the time of the latest entry, on the page of the changelog.
	Newest string
}

// framePath is the path of the board in the widget.
func framePath(o *db.Organization, b *db.Board) string {
	return FrameRoot + workspacePath(o)[len(Root):] + "/" + b.Slug
}

// frameSite returns the common parts of the pages in the widget.
func (v *visit) frameSite(b *db.Board, current string) view {
	at := framePath(v.org, b)
	of := view{Title: b.Name + " – " + v.org.Name, Site: v.org.Name, Board: b.Name, Hidden: true}
	of.Frame = frameView{Origins: v.org.WidgetOrigins, Board: boardPath(v.org, b)}
	if v.org.Color != nil {
		of.Colors = colorsPath(*v.org.Color)
	}
	of.Views = append(of.Views, link{Path: at, Title: v.words.Text("posts"), Current: current == "posts"})
	if b.ShowChangelog {
		of.Views = append(of.Views, link{Path: at + "/-/changelog", Title: v.words.Text("changelog"), Current: current == "changelog"})
	}
	return of
}

// frameBoard lists a board's posts, with a search.
func (p *Pages) frameBoard(ctx context.Context, v *visit) (*answer, error) {
	b, err := p.onBoard(ctx, v)
	if err != nil {
		return nil, err
	}
	content := boardContent{Path: framePath(v.org, b), Name: b.Name}
	if p.open(v) {
		content.New = content.Path + "/-/new"
	}
	posts, err := p.Feedback.Posts(ctx, b.ID, v.asked(&content, nil))
	if err != nil {
		return nil, err
	}
	for _, one := range posts.Items {
		content.Posts = append(content.Posts, showPost(content.Path, one.Post))
	}
	content.pager = v.pager(posts.NextCursor)
	of := v.frameSite(b, "posts")
	of.Content = content
	return v.found("frame_board", of)
}

// framePost shows a post with its comments.
func (p *Pages) framePost(ctx context.Context, v *visit) (*answer, error) {
	b, one, err := p.onPost(ctx, v)
	if err != nil {
		return nil, err
	}
	at := framePath(v.org, b)
	texts := p.converted.ForPage(v.words)
	content := postContent{shownPost: showPost(at, one.Post), Body: texts.HTML(one.BodyJSON, one.BodyText)}
	if content.MergedInto, err = p.mergedInto(ctx, at, one); err != nil {
		return nil, err
	}
	comments, err := p.Feedback.Comments(ctx, one.ID, v.listed(commentsOnPage), page.Sync{})
	if err != nil {
		return nil, err
	}
	if content.Threads, err = p.threads(ctx, texts, comments.Items); err != nil {
		return nil, err
	}
	content.pager = v.pager(comments.NextCursor)
	if content.Acts, err = p.actsOn(ctx, v, content.Path, one); err != nil {
		return nil, err
	}
	of := v.frameSite(b, "")
	of.Title, of.Content = one.Title+" – "+of.Title, content
	of.Frame.Board += "/" + one.Slug
	return v.found("frame_post", of)
}

// frameChangelog lists the published entries.
func (p *Pages) frameChangelog(ctx context.Context, v *visit) (*answer, error) {
	b, err := p.onBoard(ctx, v)
	if err != nil {
		return nil, err
	}
	found, err := p.Feedback.PublicEntries(ctx, b, v.listed(entriesOnPage))
	if err != nil {
		return nil, err
	}
	content := changelogContent{pager: v.pager(found.NextCursor)}
	if content.Entries, err = p.entries(ctx, v, b, found.Items); err != nil {
		return nil, err
	}
	for i := range content.Entries {
		for j, linked := range content.Entries[i].Links {
			content.Entries[i].Links[j].Path = FrameRoot + linked.Path[len(Root):]
		}
	}
	of := v.frameSite(b, "changelog")
	if len(found.Items) > 0 && !v.query.Has("cursor") {
		of.Frame.Newest = moment(*found.Items[0].PublishedAt)
	}
	of.Title, of.Content = v.words.Text("changelog")+" – "+of.Title, content
	of.Frame.Board += "/-/changelog"
	return v.found("frame_changelog", of)
}
