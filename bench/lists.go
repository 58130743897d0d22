package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5/pgxpool"

	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

const (
	deepPage = 1000
	// Requests for each figure. The p99 is the third slowest of them.
	listRequests = 300
	// A list whose p99 is slower than this target prints its plan.
	slowList = 20 * time.Millisecond
)

// lists measures every list of the contract on the rows of bench/seed.
type lists struct {
	pool  *pgxpool.Pool
	key   string
	base  string
	board publicid.Board
	post  publicid.Post
	// contact is the contact with the most posts.
	contact publicid.Contact
	tag     publicid.Tag
}

func measureLists(ctx context.Context, o options) error {
	l := &lists{base: os.Getenv("EARSHOT_BASE_URL")}
	var err error
	if l.pool, err = pgxpool.New(ctx, os.Getenv("DATABASE_URL")); err != nil {
		return errors.Wrap(err, "open the database")
	}
	defer l.pool.Close()
	if err := l.open(ctx); err != nil {
		return err
	}
	fmt.Printf("%-64s %6s %9s %9s   %6s %9s %9s\n", "", "page", "p50", "p99", "page", "p50", "p99")
	var pages []listPage
	for _, path := range l.paths() {
		if !strings.Contains(path, o.only) {
			continue
		}
		more, err := l.measure(ctx, path)
		if err != nil {
			return errors.Wrap(err, path)
		}
		pages = append(pages, more...)
	}
	scans := 0
	for _, p := range pages {
		plans, err := l.explain(ctx, p.path)
		if err != nil {
			return errors.Wrap(err, p.path)
		}
		if large := largeScan.FindString(plans); large != "" {
			scans++
			fmt.Printf("\n%s: %s\n%s", p.path, large, plans)
		} else if p.slow {
			fmt.Printf("\n%s\n%s", p.path, plans)
		}
	}
	fmt.Printf("\n%d of %d pages take a sequential scan of a large table\n", scans, len(pages))
	return nil
}

// listPage is one measured page of a list.
type listPage struct {
	path string
	slow bool
}

// largeScan matches a sequential scan of a table that bench/seed fills.
var largeScan = regexp.MustCompile(`Seq Scan on (contacts|contact_documents|posts|post_documents|post_tags|votes|comments|changelog_entries)\b`)

// open finds the seeded organization and makes a key for it.
func (l *lists) open(ctx context.Context) error {
	org, user, err := findSeeded(ctx, l.pool)
	if err != nil {
		return err
	}
	for dest, sql := range map[any]string{
		&l.board:   `SELECT id FROM boards WHERE organization_id = $1 ORDER BY id LIMIT 1`,
		&l.post:    `SELECT id FROM posts WHERE organization_id = $1 ORDER BY id LIMIT 1`,
		&l.contact: `SELECT id FROM contacts WHERE organization_id = $1 ORDER BY id LIMIT 1`,
		&l.tag:     `SELECT id FROM tags WHERE organization_id = $1 ORDER BY id LIMIT 1`,
	} {
		if err := l.pool.QueryRow(ctx, sql, org).Scan(dest); err != nil {
			return errors.Wrap(err, "find the seeded rows")
		}
	}
	return l.makeKey(ctx, org, user)
}

// makeKey makes a key with a rate limit that the measurement can't reach.
func (l *lists) makeKey(ctx context.Context, org publicid.Organization, user publicid.User) error {
	own, err := postgres.Open(postgres.Options{URL: os.Getenv("DATABASE_URL")})
	if err != nil {
		return err
	}
	defer own.Close()
	keys := access.New(own, change.NewRunner(own, nil, nil, change.Settings{}), slog.Default())
	key, made, err := keys.CreateAPIKey(postgres.WithOrganization(ctx, org), access.NewAPIKey{User: user, Name: "bench", Scope: "read"})
	if err != nil {
		return err
	}
	l.key = key
	_, err = l.pool.Exec(ctx, "UPDATE api_keys SET rate_limit = 10000000 WHERE id = $1", made.ID)
	if err != nil {
		return errors.Wrap(err, "lift the rate limit")
	}
	return nil
}

// paths returns the lists with each sort, and filters with many, few and no results.
func (l *lists) paths() []string {
	contacts, posts := "/v1/contacts", "/v1/boards/"+l.board.String()+"/posts"
	return []string{
		contacts, contacts + "?sort=last_seen", contacts + "?sort=mrr",
		contacts + "?q=ada", contacts + "?q=zyx", contacts + "?q=nobody%40nowhere", contacts + "?q=a", contacts + "?q=zy", contacts + "?q=%C3%A9",
		contacts + "?q=marques123&sort=mrr", contacts + "?q=costa&sort=last_seen",
		contacts + "?plan=team", contacts + "?plan=enterprise&sort=last_seen", contacts + "?plan=enterprise,unheard&sort=mrr",
		contacts + "?email=ada.marques12%40company12.example.com", contacts + "?externalUserId=user-77",
		contacts + "?source=admin", contacts + "?source=public_vote", contacts + "?consentBasis=legacy_inferred&sort=mrr",
		contacts + "?updatedSince=2022-12-01T00:00:00Z", contacts + "?updatedSince=2022-12-20T00:00:00Z&sort=last_seen",
		"/v1/contacts/" + l.contact.String(), "/v1/contacts/" + l.contact.String() + "/posts",
		posts, posts + "?sort=votes", posts + "?sort=active",
		posts + "?status=open", posts + "?status=declined", posts + "?status=declined&sort=votes", posts + "?status=shipped,declined&sort=active",
		posts + "?status=under_review&sort=votes",
		posts + "?tagIds=" + l.tag.String(), posts + "?sort=votes&tagIds=" + l.tag.String(),
		posts + "?contactId=" + l.contact.String(), posts + "?sort=votes&contactId=" + l.contact.String(),
		posts + "?q=export", posts + "?q=xylophone", posts + "?q=unheardof", posts + "?q=export+dashboards+pdf",
		posts + "?q=export+dashboard&sort=votes", posts + "?q=xylophone&sort=votes", posts + "?q=export+-filter&sort=active",
		"/v1/posts/" + l.post.String() + "/votes", "/v1/posts/" + l.post.String() + "/comments",
		"/v1/boards/" + l.board.String() + "/changelog", "/v1/boards/" + l.board.String() + "/tags", "/v1/boards",
	}
}

// measure measures the first and the deepest page of a path, prints one line, and returns the
// pages.
func (l *lists) measure(ctx context.Context, path string) (pages []listPage, err error) {
	fmt.Printf("%-64s", strings.ReplaceAll(path, l.board.String(), "…"))
	deep, page, err := l.walk(ctx, path)
	if err != nil {
		return nil, err
	}
	for i, at := range []string{path, deep} {
		if i == 1 && page == 1 {
			break
		}
		var times latencies
		for range listRequests {
			began := time.Now()
			if _, err := l.get(ctx, at); err != nil {
				return nil, err
			}
			times.add(time.Since(began))
		}
		fmt.Printf(" %6d %9s %9s  ", []int{1, page}[i], brief(times.quantile(0.5)), brief(times.quantile(0.99)))
		pages = append(pages, listPage{at, times.quantile(0.99) > slowList})
	}
	fmt.Println()
	return pages, nil
}

// walk follows the cursors to page 1,000, or to the last page if there are fewer.
func (l *lists) walk(ctx context.Context, path string) (at string, page int, err error) {
	at = path
	for page = 1; page < deepPage; page++ {
		next, err := l.get(ctx, at)
		if err != nil || next == "" {
			return at, page, err
		}
		joint := "?"
		if strings.Contains(path, "?") {
			joint = "&"
		}
		at = path + joint + "cursor=" + url.QueryEscape(next)
	}
	return at, page, nil
}

// get reads a page and returns the cursor of the next page.
func (l *lists) get(ctx context.Context, path string) (next string, err error) {
	r, err := l.request(ctx, l.base+path)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", errors.Wrap(err, "read a list")
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", errors.Wrap(err, "read a list")
	}
	if answer.StatusCode != http.StatusOK {
		return "", errors.Errorf("%s: %s", answer.Status, body)
	}
	var page struct{ NextCursor *string }
	if err := json.Unmarshal(body, &page); err != nil {
		return "", errors.Wrap(err, "decode a list")
	}
	if page.NextCursor == nil {
		return "", nil
	}
	return *page.NextCursor, nil
}

func (l *lists) request(ctx context.Context, at string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, errors.Wrap(err, "make a request")
	}
	r.Header.Set("Authorization", "Bearer "+l.key)
	return r, nil
}
