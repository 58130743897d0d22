package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/go-faster/errors"

	earshot "earshot/sdk/go"
)

// pages are those of the seeded board, which is public while they are read. Readers have no key.
type pages struct {
	http *http.Client
	base string
	// list is the path of the board's first page.
	list string
}

// openPages makes the seeded board public. What it returns makes it private again.
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

// read reads a page as a browser asks for it.
func (p pages) read(ctx context.Context, path string) ([]byte, error) {
	var page bytes.Buffer
	err := p.readTo(ctx, path, &page)
	return page.Bytes(), err
}

// readTo reads a page to where the reader wants it.
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

// nextPage is in the link to the next page of a list.
var nextPage = regexp.MustCompile(`\?cursor=[\w-]+`)

// some are the paths of the list's first n pages, or of all where it has fewer.
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

// readPages reads so many pages of the public list, one after the other.
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

// reading reads one page after the other, each of which has what it had.
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

const (
	// readers come within the time, each with a connection of its own.
	readers     = 10_000
	readersTime = 20 * time.Second
	// What the API is asked meanwhile, and what its p99 may be beside readers of pages, as a multiple
	// of its value beside as many who ask for a line of text: connections, and who makes them, take
	// their time of the same processors whatever they are for.
	besideRate  = 100
	readersMost = 1.5
	// What a page may take of which nobody has asked in the last second.
	pagesRate = 50
	pageMost  = 20 * time.Millisecond
)

// measureReaders prints how long a page takes, and how long a list of the API alone and beside
// readers of public pages. It returns an error where one is slower than it may be.
func (s *stack) measureReaders(ctx context.Context, o options) (err error) {
	if _, err := s.once(ctx, o, subject{seeded: true, run: func(context.Context) (measured, error) { return measured{}, nil }}); err != nil {
		return err
	}
	p, hide, err := s.openPages(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hide()) }()
	paths, err := p.some(ctx, pagesRate+pagesRate/2) // by then none is kept any more
	if err != nil {
		return err
	}
	_, ask, err := s.seeded.sameEachTime(ctx, s.seeded.postsPath(""))
	if err != nil {
		return err
	}
	var page, beside, besideText []time.Duration
	for range o.runs {
		for _, one := range []struct {
			name string
			p99s *[]time.Duration
			take func() (*latencies, error)
		}{
			{fmt.Sprintf("%d pages a second, each another one", pagesRate), &page, func() (*latencies, error) { return everyPeriod(ctx, pagesRate, p.reading(paths)) }},
			{fmt.Sprintf("%d lists of the API a second, alone", besideRate), new([]time.Duration), func() (*latencies, error) { return everyPeriod(ctx, besideRate, ask) }},
			{fmt.Sprintf("… beside %d who ask for a line of text", readers), &besideText, func() (*latencies, error) { return besideReaders(ctx, p, []string{"/robots.txt"}, ask) }},
			{fmt.Sprintf("… beside %d readers of pages", readers), &beside, func() (*latencies, error) { return besideReaders(ctx, p, paths, ask) }},
		} {
			times, err := one.take()
			if err != nil {
				return err
			}
			*one.p99s = append(*one.p99s, printReaders(one.name, times))
		}
	}
	return tooSlow(medianTime(page), medianTime(beside), medianTime(besideText))
}

// tooSlow is an error where one of the p99s is more than it may be. They are medians of the runs, because
// a p99 is made of some twenty answers and swings by half from run to run.
func tooSlow(page, beside, besideText time.Duration) error {
	var beyond []error
	if page > pageMost {
		beyond = append(beyond, errors.Errorf("a page's p99 is more than %s", pageMost))
	}
	if float64(beside) > readersMost*float64(besideText) {
		beyond = append(beyond, errors.Errorf("beside readers the API's p99 is more than %.1f times its value beside as many who ask for nothing", readersMost))
	}
	return errors.Join(beyond...)
}

func medianTime(of []time.Duration) time.Duration { return slices.Sorted(slices.Values(of))[len(of)/2] }

func everyPeriod(ctx context.Context, rate int, do operation) (*latencies, error) {
	return openLoop(ctx, rate, readersTime, func(ctx context.Context, i int, _ time.Time) error { return do(ctx, i) })
}

func printReaders(name string, l *latencies) (p99 time.Duration) {
	p99 = l.quantile(0.99)
	fmt.Printf("%-44s p50 %9s  p99 %9s  max %9s\n", name, brief(l.quantile(0.5)), brief(p99), brief(l.quantile(1)))
	return p99
}

// besideReaders asks the API while readers come, each to one of the pages.
func besideReaders(ctx context.Context, p pages, paths []string, ask operation) (*latencies, error) {
	ended := make(chan error, 1)
	go func() {
		_, err := everyPeriod(ctx, readers/int(readersTime.Seconds()), func(ctx context.Context, i int) error {
			own := p
			own.http = newHTTPClient()
			defer own.http.CloseIdleConnections()
			// Nothing keeps the page: the service is in this process, and what its load allocates slows it.
			return own.readTo(ctx, paths[i%len(paths)], io.Discard)
		})
		ended <- err
	}()
	times, err := everyPeriod(ctx, besideRate, ask)
	return times, errors.Join(err, <-ended)
}
