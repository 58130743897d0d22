package mcp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/api"
	"earshot/internal/memory"
	"earshot/internal/ratelimit"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/mcp"
)

func TestAToolThatWaitsForTooLongSaysSoAsTheAPIDoes(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{DatabaseURL: testkit.ImpatientDatabase(t)})
	a := newAgent(t, app, app.Tenant(t).Key)
	c, err := pgx.Connect(t.Context(), app.Config.DatabaseURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	tx, err := c.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE boards IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	got := a.call(t, "list_boards", object{})
	require.True(t, got.failed)
	require.Equal(t, "ERR_UNAVAILABLE", got.code(), got.raw)
	require.NoError(t, tx.Rollback(t.Context()))
	require.False(t, a.call(t, "list_boards", object{}).failed)
}

// atEnd is a reader without content. Read calls the function.
type atEnd func()

func (f atEnd) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

func TestLargeArgumentsWaitForADecoderOfTheAPI(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	handler, err := api.New(app.UseCases, api.Options{RateLimits: ratelimit.NewKeys(app.Store, 10_000), Log: testkit.Log(t)})
	require.NoError(t, err)
	require.NoError(t, mcp.Mount(handler, testkit.Log(t)))
	// Requests to another surface take all decoders.
	taken, free := make(chan struct{}), make(chan struct{})
	handler.Mount("/decoders", func(_ http.ResponseWriter, r *http.Request, g *api.SurfaceRequest) {
		_ = g.Decode(r.Context(), 1<<20, func() { taken <- struct{}{}; <-free })
	})
	post := func(ctx context.Context, path string, body io.Reader) string {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, body)
		r.Header.Set("Authorization", "Bearer "+n.Key)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Body.String()
	}
	var all sync.WaitGroup
	for range memory.Decoders {
		all.Go(func() { post(t.Context(), "/decoders", nil) })
		<-taken
	}

	// No tool accepts a list as its arguments. The call finds that out once it may decode the list.
	call := func(list string) io.Reader {
		return strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_boards","arguments":["` + list + `"]}}`)
	}
	large := strings.Repeat("a", 100<<10)
	read, answered := make(chan struct{}), make(chan string, 1)
	go func() {
		answered <- post(t.Context(), mcp.Path, io.MultiReader(call(large), atEnd(func() { close(read) })))
	}()
	<-read
	for range 100 { // far longer than the large call would take, if it did not wait
		require.Contains(t, post(t.Context(), mcp.Path, call("small")), "ERR_VALIDATION")
	}
	require.Empty(t, answered)
	close(free)
	all.Wait()
	require.Contains(t, <-answered, "ERR_VALIDATION")
}
