package api_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

// pollInterval is the interval between two checks of a condition.
const pollInterval = 10 * time.Millisecond

// hold locks a post's row until release.
func hold(t *testing.T, app *apptest.App, post string) (release func()) {
	t.Helper()
	var id publicid.Post
	require.NoError(t, id.UnmarshalText([]byte(post)))
	return locked(t, app, "SELECT FROM posts WHERE id = $1 FOR UPDATE", id)
}

func connect(t *testing.T, app *apptest.App) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), app.Config.DatabaseURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}

// awaitWaiting waits until n connections of the database wait for a lock.
func awaitWaiting(t *testing.T, app *apptest.App, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		var waiting int
		err := app.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		return err == nil && waiting >= n
	}, testkit.Wait, pollInterval)
}

// One request waits for the post with one connection. Later requests wait for that request, and are
// refused after some seconds.
func TestRequestsThatWaitForAHotPostBlockNoOtherRequest(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{Alone: true}) // no other test waits for locks here
	n, other := newFixture(t, app), newFixture(t, app)
	release := hold(t, app, n.ids["postId"])
	path := "/v1/posts/" + n.ids["postId"] + "/votes"
	first := burst(t, app, 1, path, n.Key, "")
	awaitWaiting(t, app, 1)
	later := burst(t, app, 63, path, n.Key, "")
	for range 5 {
		require.Equal(t, http.StatusOK, meanwhile(t, app, http.MethodGet, "/v1/boards", other.Key, ""))
		require.Equal(t, http.StatusOK, meanwhile(t, app, http.MethodGet, "/v1/boards", n.Key, ""),
			"the same organization reads on")
		require.Equal(t, http.StatusCreated, meanwhile(t, app, http.MethodPost, "/v1/boards/"+other.ids["boardId"]+"/posts",
			other.Key, `{"title":"Meanwhile"}`))
	}
	for range cap(later) {
		a := <-later
		require.NotNil(t, a, "it was answered")
		require.Equal(t, http.StatusTooManyRequests, a.Status)
		require.Equal(t, "1", a.Header.Get("Retry-After"))
	}
	release()
	a := <-first
	require.NotNil(t, a, "it was answered")
	require.Equal(t, http.StatusCreated, a.Status, "the request that waited for the post itself has its vote")
}

// burst sends requests in parallel. A missing answer is nil.
func burst(t *testing.T, app *apptest.App, n int, path, key, body string) <-chan *apptest.Answer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan *apptest.Answer, n)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			a, _ := request(ctx, app, http.MethodPost, path, key, body)
			answers <- a
		})
	}
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
	return answers
}

// unhindered is the time limit for a request that must not wait for others. It is far more than
// such a request takes on a busy machine. It is less than the 5 s after which waiting requests are
// refused.
const unhindered = 2 * time.Second

// meanwhile returns the status of a request that must not wait for others.
func meanwhile(t *testing.T, app *apptest.App, method, path, key, body string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), unhindered)
	defer cancel()
	a, err := request(ctx, app, method, path, key, body)
	require.NoError(t, err)
	return a.Status
}

// request sends a request from a goroutine, so it fails no test. The answer has only a status and
// headers. It is nil if there is none.
func request(ctx context.Context, app *apptest.App, method, path, key, body string) (*apptest.Answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, app.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, errors.Wrap(err, "make the request")
	}
	r.Header.Set("Authorization", "Bearer "+key)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, errors.Wrap(err, "send the request")
	}
	defer a.Body.Close()
	if _, err := io.Copy(io.Discard, a.Body); err != nil {
		return nil, errors.Wrap(err, "read the answer")
	}
	return &apptest.Answer{Status: a.StatusCode, Header: a.Header}, nil
}

func TestABodyOfManyFailuresIsAnsweredInShort(t *testing.T) {
	t.Parallel()
	n := apptest.Start(t, apptest.Options{}).Tenant(t)
	events := strings.Repeat(`"x",`, 100_000) + `"x"`
	a := n.Do(t, http.MethodPost, "/v1/webhooks", `{"url":"https://a.example/","events":[`+events+`]}`)
	require.Equal(t, http.StatusUnprocessableEntity, a.Status)
	require.Len(t, a.Fields(), 1000)
	require.Less(t, len(a.Raw), 250_000)
}
