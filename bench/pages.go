package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"sync"

	"github.com/go-faster/errors"

	earshot "earshot/sdk/go"
)

// pages reads the pages of the seeded board, which is public during the measurement. Readers have
// no key.
type pages struct {
	http *http.Client
	base string
	// list is the path of the board's first page.
	list string
}

// openPages makes the seeded board public. The function hide makes it private again.
func (s *stack) openPages(ctx context.Context) (p pages, hide func() error, err error) {
	d := s.seeded
	if err := d.showBoard(ctx, true); err != nil {
		return p, nil, err
	}
	hide = func() error { return d.showBoard(context.WithoutCancel(ctx), false) }
	var slug string
	if err := s.pool.QueryRow(ctx, "SELECT slug FROM boards WHERE id = $1", d.boardID()).Scan(&slug); err != nil {
		return p, nil, errors.Join(errors.Wrap(err, "find the board's address"), hide())
	}
	return pages{http: newHTTPClient(), base: d.base, list: "/b/" + d.organization.String() + "/" + slug}, hide, nil
}

func (t tenant) showBoard(ctx context.Context, public bool) error {
	if _, err := t.api.Boards.Update(ctx, t.board, earshot.UpdateBoardRequest{Public: &public}); err != nil {
		return errors.Wrap(err, "change who may read the board")
	}
	return nil
}

// read requests a page as a browser does.
func (p pages) read(ctx context.Context, path string) ([]byte, error) {
	var page bytes.Buffer
	err := p.readTo(ctx, path, &page)
	return page.Bytes(), err
}

// readTo requests a page and copies it to the writer.
func (p pages) readTo(ctx context.Context, path string, to io.Writer) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+path, nil)
	if err != nil {
		return errors.Wrap(err, "make a request")
	}
	r.Header.Set("Accept", "text/html")
	answer, err := p.http.Do(r)
	if err != nil {
		return errors.Wrap(err, "read a page")
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(to, answer.Body); err != nil {
		return errors.Wrap(err, "read a page")
	}
	if answer.StatusCode != http.StatusOK {
		return errors.Errorf("read %s: %s", path, answer.Status)
	}
	return nil
}

// nextPage matches the query in the link to the next page of a list.
var nextPage = regexp.MustCompile(`\?cursor=[\w-]+`)

// some returns the paths of the first n pages of the list, or of all pages if there are fewer.
func (p pages) some(ctx context.Context, n int) ([]string, error) {
	paths, query := make([]string, n), ""
	for i := range paths {
		paths[i] = p.list + query
		page, err := p.read(ctx, paths[i])
		if err != nil {
			return nil, err
		}
		if query = string(nextPage.Find(page)); query == "" {
			return paths[:i+1], nil
		}
	}
	return paths, nil
}

// readPages reads the first n pages of the public list, one after the other.
func (s *stack) readPages(ctx context.Context, o options, n int) (m measured, err error) {
	p, hide, err := s.openPages(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, hide()) }()
	paths, err := p.some(ctx, n)
	if err != nil {
		return m, err
	}
	return s.loop(ctx, o, p.reading(paths))
}

// reading reads one page after the other. Each page must stay the same as on the first read.
func (p pages) reading(paths []string) operation {
	var first sync.Map
	return func(ctx context.Context, i int) error {
		path := paths[i%len(paths)]
		page, err := p.read(ctx, path)
		if err != nil {
			return err
		}
		if before, there := first.LoadOrStore(path, page); there && !bytes.Equal(before.([]byte), page) {
			return errors.Errorf("%s is another page than before, though nothing changed", path)
		}
		return nil
	}
}
