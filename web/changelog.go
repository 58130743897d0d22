package web

import (
	"context"
	"html/template"
	"time"

	"earshot/ent/db"
	"earshot/internal/feedback"
	"earshot/internal/publicid"
	"earshot/web/markup"
)

const entriesOnPage = 20

type changelogContent struct {
	pager
	// Single is true on the page of one entry.
	Single  bool
	Entries []shownEntry
}

type shownEntry struct {
	// Path is empty on the entry's own page.
	Path, Title, Version string
	PublishedAt          time.Time
	Body                 template.HTML
	Links                []shownPost
}

func changelogPath(o *db.Organization, b *db.Board) string { return boardPath(o, b) + "/-/changelog" }

// changelog lists the published entries, on the board or in the widget.
func (p *Pages) changelog(ctx context.Context, v *visit) (*answer, error) {
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
	of := v.siteOf(b, "changelog")
	if len(found.Items) > 0 && !v.query.Has("cursor") {
		of.Frame.Newest = moment(*found.Items[0].PublishedAt)
	}
	of.Frame.Board += "/-/changelog"
	of.Title = v.words.Text("changelog") + " – " + of.Title
	of.Canonical, of.Hidden, of.Content = v.base+changelogPath(v.org, b), v.query.Has("cursor"), content
	return v.found("changelog", of)
}

// entry shows one entry.
func (p *Pages) entry(ctx context.Context, v *visit) (*answer, error) {
	b, err := p.onBoard(ctx, v)
	if err != nil {
		return nil, err
	}
	e, err := p.Feedback.PublicEntry(ctx, b, v.path("entry"))
	if err != nil {
		return nil, err
	}
	content := changelogContent{Single: true}
	if content.Entries, err = p.entries(ctx, v, b, []*feedback.Entry{e}); err != nil {
		return nil, err
	}
	of := v.boardSite(b, "")
	of.Title, of.Description = e.Title+" – "+of.Title, markup.Excerpt(e.BodyText)
	of.Canonical = v.base + content.Entries[0].Path
	content.Entries[0].Path = ""
	of.Content = content
	return v.found("changelog", of)
}

// entries converts entries of the board for a page.
func (p *Pages) entries(ctx context.Context, v *visit, b *db.Board, all []*feedback.Entry) ([]shownEntry, error) {
	posts, err := p.Feedback.PublicLinks(ctx, b, all)
	if err != nil {
		return nil, err
	}
	texts := p.converted.ForPage(v.words)
	var shown []shownEntry
	for _, e := range all {
		one := shownEntry{
			Path: changelogPath(v.org, b) + "/" + e.Slug, Title: e.Title, PublishedAt: *e.PublishedAt,
			Body: texts.HTML(e.BodyJSON, e.BodyText), Links: linked(v.boardAt(b), e.PostIDs, posts),
		}
		if e.Version != nil {
			one.Version = *e.Version
		}
		shown = append(shown, one)
	}
	return shown, nil
}

func linked(at string, ids []publicid.Post, posts map[publicid.Post]*db.Post) (shown []shownPost) {
	for _, id := range ids {
		if one := posts[id]; one != nil {
			shown = append(shown, showPost(at, one))
		}
	}
	return shown
}
