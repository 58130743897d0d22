package web

import (
	"context"
	"encoding/xml"
	"net/http"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/feedback"
)

// Documents for programs: the feed of a changelog (RFC 4287), and sitemaps.

type atomFeed struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated string      `xml:"updated"`
	Author  string      `xml:"author>name"`
	Links   []atomLink  `xml:"link"`
	Entries []atomEntry `xml:"entry"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr"`
	Type string `xml:"type,attr"`
	Href string `xml:"href,attr"`
}

type atomEntry struct {
	ID        string   `xml:"id"`
	Title     string   `xml:"title"`
	Published string   `xml:"published"`
	Updated   string   `xml:"updated"`
	Link      atomLink `xml:"link"`
	Content   atomText `xml:"content"`
}

type atomText struct {
	Type string `xml:"type,attr"`
	HTML string `xml:",chardata"`
}

const (
	typeAtom = "application/atom+xml"
	typeXML  = "application/xml; charset=utf-8"
	pageType = "text/html"
)

// feed is the first page of the changelog for feed readers.
func (p *Pages) feed(ctx context.Context, v *visit) (*answer, error) {
	b, err := p.onBoard(ctx, v)
	if err != nil {
		return nil, err
	}
	found, err := p.Feedback.PublicEntries(ctx, b, v.listed(entriesOnPage))
	if err != nil {
		return nil, err
	}
	shown, err := p.entries(ctx, v, b, found.Items)
	if err != nil {
		return nil, err
	}
	at := v.base + changelogPath(v.org, b)
	feed := atomFeed{
		// An address changes with its slug; an id never changes.
		ID: "urn:uuid:" + b.ID.UUID().String(), Title: v.words.Text("changelog") + " – " + b.Name, Author: v.org.Name,
		Links: []atomLink{{"self", typeAtom, at + ".atom"}, {"alternate", pageType, at}},
	}
	latest := b.CreatedAt
	for i, e := range found.Items {
		latest = later(latest, updated(e))
		feed.Entries = append(feed.Entries, atomEntry{
			ID: "urn:uuid:" + e.ID.UUID().String(), Title: e.Title,
			Published: instant(*e.PublishedAt), Updated: instant(updated(e)),
			Link: atomLink{"alternate", pageType, v.base + shown[i].Path}, Content: atomText{"html", string(shown[i].Body)},
		})
	}
	feed.Updated = instant(latest)
	return encoded(typeAtom+"; charset=utf-8", feed)
}

// updated is the time of an entry's last visible change. An edit before the publication becomes
// visible with the publication.
func updated(e *feedback.Entry) time.Time { return later(*e.PublishedAt, e.UpdatedAt) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func instant(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func encoded(mediaType string, document any) (*answer, error) {
	text, err := xml.Marshal(document)
	if err != nil {
		return nil, errors.Wrap(err, "encode")
	}
	return newAnswer(http.StatusOK, mediaType, append([]byte(xml.Header), text...)), nil
}

type sitemapIndex struct {
	XMLName xml.Name       `xml:"http://www.sitemaps.org/schemas/sitemap/0.9 sitemapindex"`
	Maps    []sitemapEntry `xml:"sitemap"`
}

type sitemap struct {
	XMLName xml.Name       `xml:"http://www.sitemaps.org/schemas/sitemap/0.9 urlset"`
	Pages   []sitemapEntry `xml:"url"`
}

type sitemapEntry struct {
	Location string `xml:"loc"`
	Changed  string `xml:"lastmod,omitempty"`
}

// workspaceSitemap lists the sitemaps of the organization's public boards. There is no sitemap of
// all organizations, because the list of organizations is confidential.
func (p *Pages) workspaceSitemap(ctx context.Context, v *visit) (*answer, error) {
	boards, err := p.Feedback.PublicBoards(ctx, v.listed(boardsOnPage))
	if err != nil {
		return nil, err
	}
	if len(boards.Items) == 0 {
		return nothing(ctx, v)
	}
	var index sitemapIndex
	for _, b := range boards.Items {
		index.Maps = append(index.Maps, sitemapEntry{Location: v.base + boardPath(v.org, b) + "/-/sitemap.xml"})
	}
	return encoded(typeXML, index)
}

// boardSitemap lists the addresses of a board's pages.
func (p *Pages) boardSitemap(ctx context.Context, v *visit) (*answer, error) {
	b, err := p.onBoard(ctx, v)
	if err != nil {
		return nil, err
	}
	posts, err := p.Feedback.PublicAddresses(ctx, b)
	if err != nil {
		return nil, err
	}
	at := v.base + boardPath(v.org, b)
	all := sitemap{Pages: boardAddresses(at, b)}
	for _, one := range posts {
		all.Pages = append(all.Pages, sitemapEntry{at + "/" + one.Slug, instant(one.UpdatedAt)})
	}
	return encoded(typeXML, all)
}

func boardAddresses(at string, b *db.Board) []sitemapEntry {
	all := []sitemapEntry{{Location: at}}
	if b.ShowRoadmap {
		all = append(all, sitemapEntry{Location: at + "/-/roadmap"})
	}
	if b.ShowChangelog {
		all = append(all, sitemapEntry{Location: at + "/-/changelog"})
	}
	return all
}
