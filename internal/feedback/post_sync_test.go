package feedback_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
)

// copied is an integrator's synchronized copy of a list.
type copied struct {
	n     *tenant
	query string
	// cursor is the last syncCursor.
	cursor string
	rows   map[string]string
}

// poll reads all changes and returns the number of rows and deletions.
func (c *copied) poll(t *testing.T) (came int) {
	t.Helper()
	for {
		path := c.query
		if c.cursor != "" {
			path += "&cursor=" + url.QueryEscape(c.cursor)
		}
		a := c.n.Do(t, http.MethodGet, path, nil)
		require.Equal(t, 200, a.Status, "%s", a.Raw)
		for _, row := range a.Body["data"].([]any) {
			c.rows[row.(object)["id"].(string)] = asText(t, row)
			came++
		}
		for _, row := range a.Body["deleted"].([]any) {
			delete(c.rows, row.(object)["id"].(string))
			came++
		}
		c.cursor = a.Body["syncCursor"].(string)
		if a.Body["nextCursor"] == nil {
			return came
		}
		require.Equal(t, a.Body["nextCursor"], a.Body["syncCursor"])
	}
}

func asText(t *testing.T, row any) string {
	t.Helper()
	text, err := json.Marshal(row)
	require.NoError(t, err)
	return string(text)
}

// catchesUp polls until the copy equals the list. This takes until the other transactions on this
// Postgres have ended.
func (c *copied) catchesUp(t *testing.T, list string) {
	t.Helper()
	want := map[string]string{}
	for cursor := ""; ; {
		a := c.n.Do(t, http.MethodGet, list+cursor, nil)
		require.Equal(t, 200, a.Status, "%s", a.Raw)
		for _, row := range a.Body["data"].([]any) {
			if deletedAt := row.(object)["deletedAt"]; deletedAt == nil {
				want[row.(object)["id"].(string)] = asText(t, row)
			}
		}
		next, ok := a.Body["nextCursor"].(string)
		if !ok {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(next)
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if c.poll(t); assert.ObjectsAreEqual(want, c.rows) {
			return
		}
	}
	require.Equal(t, want, c.rows)
}

// inStep is a list with the operations of its writers.
type inStep struct {
	// list and query already have a query parameter.
	list, query, table string
	create             func(t *testing.T) string
	// change updates the row with this path.
	change func(t *testing.T, path string)
	path   func(id string) string
	n      *tenant
}

func (l inStep) remove(t *testing.T, path string) {
	a := l.n.Do(t, http.MethodDelete, path, nil)
	assert.Equal(t, 200, a.Status, "%s", a.Raw)
}

const (
	since       = "updatedSince=2020-01-01T00:00:00Z&includeDeleted=true&limit=7"
	syncWriters = 3
	syncWrites  = 25
)

func TestACopyThatPollsMissesNothing(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*testing.T, *tenant){
		"although a change commits late":                               lateCommit,
		"which a poll by the latest updatedAt does":                    naivePoll,
		"of the posts of a board that was deleted":                     deletedBoard,
		"of posts whose counts alone change":                           countedAgain,
		"unless it is of another list, or made up":                     foreignSyncCursor,
		"but of a search, which has no such order":                     unorderedSearch,
		"and leaves out objects that were updated before updatedSince": updatedBefore,
		"but that a contact was seen":                                  seenAgain,
		"and keeps a place that was settled":                           settledOnce,
		"of objects that change with another one":                      relatedSince,
	}
	for name, of := range map[string]func(*testing.T, *tenant) inStep{
		"of a board's posts": postsInStep, "of all posts": allPostsInStep, "of comments": commentsInStep,
		"of contacts": contactsInStep, "of the changelog": entriesInStep,
	} {
		tests["while many write, "+name] = func(t *testing.T, n *tenant) { writeAndPoll(t, n, of(t, n)) }
	}
	together(t, tests)
}

func newCopy(n *tenant, query string) *copied {
	return &copied{n: n, query: query, rows: map[string]string{}}
}

func postsInStep(t *testing.T, n *tenant) inStep {
	board := n.Board(t)
	return inStep{
		n:    n,
		list: board + "/posts?limit=100", query: board + "/posts?" + since, table: "posts",
		create: func(t *testing.T) string { return n.ID(t, board+"/posts", object{"title": "A wish"}) },
		change: func(t *testing.T, path string) { n.Do(t, http.MethodPost, path+"/votes", nil) },
		path:   func(id string) string { return "/v1/posts/" + id },
	}
}

func allPostsInStep(t *testing.T, n *tenant) inStep {
	in := postsInStep(t, n)
	in.list, in.query = "/v1/posts?limit=100", "/v1/posts?"+since+"&sort=updated"
	return in
}

func commentsInStep(t *testing.T, n *tenant) inStep {
	post := n.Post(t)
	return inStep{
		n:    n,
		list: post + "/comments?limit=100", query: post + "/comments?" + since, table: "comments",
		create: func(t *testing.T) string { return n.ID(t, post+"/comments", object{"body": object{"text": "Me too."}}) },
		change: func(t *testing.T, path string) {
			n.Do(t, http.MethodPatch, path, object{"body": object{"text": fmt.Sprint(rand.Int())}})
		},
		path: func(id string) string { return "/v1/comments/" + id },
	}
}

func contactsInStep(_ *testing.T, n *tenant) inStep {
	return inStep{
		n:    n,
		list: "/v1/contacts?limit=100", query: "/v1/contacts?sort=updated&" + since, table: "contacts",
		create: func(t *testing.T) string { return n.ID(t, "/v1/contacts", object{"name": "Ada"}) },
		change: func(t *testing.T, path string) {
			n.Do(t, http.MethodPatch, path, object{"plan": fmt.Sprint(rand.Int())})
		},
		path: func(id string) string { return "/v1/contacts/" + id },
	}
}

func entriesInStep(t *testing.T, n *tenant) inStep {
	board := n.Board(t)
	return inStep{
		n:    n,
		list: board + "/changelog?limit=100", query: board + "/changelog?" + since, table: "changelog_entries",
		create: func(t *testing.T) string { return n.ID(t, board+"/changelog", object{"title": "News"}) },
		change: func(t *testing.T, path string) {
			n.Do(t, http.MethodPatch, path, object{"title": fmt.Sprint(rand.Int())})
		},
		path: func(id string) string { return "/v1/changelog/" + id },
	}
}

// writeAndPoll polls during writes through the API and writes in transactions that stay open for
// several polls.
func writeAndPoll(t *testing.T, n *tenant, l inStep) {
	c := newCopy(n, l.query)
	kept := l.create(t)
	var polls sync.Mutex // held during a poll, so that the open transactions can wait for it
	polled := sync.NewCond(&polls)
	count, done := 0, false
	var writers sync.WaitGroup
	for range syncWriters {
		writers.Go(func() { write(t, l) })
	}
	db := n.connect(t)
	defer func() { // also after a failed poll
		polls.Lock()
		count += 1_000_000
		polled.Broadcast()
		polls.Unlock()
		writers.Wait()
	}()
	writers.Go(func() {
		for range 5 {
			tx, err := db.Begin(t.Context())
			if !assert.NoError(t, err) {
				return
			}
			_, err = tx.Exec(t.Context(), "UPDATE "+l.table+" SET updated_at = clock_timestamp() WHERE id = $1", rawID(t, kept))
			assert.NoError(t, err)
			polls.Lock()
			for until := count + 2; count < until; {
				polled.Wait()
			}
			polls.Unlock()
			assert.NoError(t, tx.Commit(t.Context()))
		}
	})
	go func() { writers.Wait(); polls.Lock(); done = true; polls.Unlock() }()
	for over := false; !over; {
		polls.Lock()
		over = done
		polls.Unlock()
		c.poll(t)
		polls.Lock()
		count++
		polled.Broadcast()
		polls.Unlock()
	}
	c.catchesUp(t, l.list)
	require.NotEmpty(t, c.rows)
}

// write inserts rows, and changes and removes its own rows.
func write(t *testing.T, l inStep) {
	var own []string
	for i := range syncWrites {
		switch at := rand.IntN(3); {
		case at == 0 || len(own) < 2:
			own = append(own, l.path(l.create(t)))
		case at == 1 && i%2 == 0:
			l.remove(t, own[0])
			own = own[1:]
		default:
			l.change(t, own[rand.IntN(len(own))])
		}
	}
}

// rawID returns the form in which the database stores an id.
func rawID(t *testing.T, id string) string {
	t.Helper()
	switch prefix, _, _ := strings.Cut(id, "_"); prefix {
	case "pst":
		return publicid.Read[publicid.Post](id).UUID().String()
	case "cmt":
		return publicid.Read[publicid.Comment](id).UUID().String()
	case "ctc":
		return publicid.Read[publicid.Contact](id).UUID().String()
	default:
		return publicid.Read[publicid.ChangelogEntry](id).UUID().String()
	}
}
