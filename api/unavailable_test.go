package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/api"
	"earshot/internal/access"
	"earshot/internal/ratelimit"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
)

// locked runs a statement that takes a lock, and holds the lock until release.
func locked(t *testing.T, app *apptest.App, sql string, args ...any) (release func()) {
	t.Helper()
	tx, err := connect(t, app).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
	return func() {
		t.Helper()
		require.NoError(t, tx.Rollback(t.Context()))
	}
}

// everyTable lists the tables of the service.
func everyTable(t *testing.T, app *apptest.App) string {
	t.Helper()
	rows, err := app.Pool.Query(t.Context(),
		`SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'goose_db_version'`)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(names, ", ")
}

func requireUnavailable(t *testing.T, what string, a apptest.Answer) {
	t.Helper()
	require.Equal(t, http.StatusServiceUnavailable, a.Status, "%s: %s", what, a.Raw)
	require.Equal(t, "ERR_UNAVAILABLE", a.Code(), what)
	require.Equal(t, "5", a.Header.Get("Retry-After"), what)
}

// The service has 8 connections here.
func TestABurstOfIdentifiesForALockedContactBlocksNoOtherRequest(t *testing.T) {
	tier.Slow(t, "waits for the deadline of connections, 5 s")
	t.Parallel()
	app := apptest.Start(t, apptest.Options{DatabaseURL: testkit.ImpatientDatabase(t)})
	n, other := newFixture(t, app), newFixture(t, app)
	release := locked(t, app, "SELECT FROM contacts WHERE external_user_id = 'u-1' AND organization_id = $1 FOR UPDATE",
		n.Organization.ID)
	answers := burst(t, app, 200, "/v1/contacts/identify", n.Key, `{"externalUserId":"u-1"}`)
	awaitWaiting(t, app, 1)
	for range 10 {
		require.Equal(t, http.StatusOK, meanwhile(t, app, http.MethodGet, "/v1/boards", n.Key, ""))
		require.Equal(t, http.StatusCreated, meanwhile(t, app, http.MethodPost, "/v1/boards/"+other.ids["boardId"]+"/posts",
			other.Key, `{"title":"Meanwhile"}`))
		fresh := other.NewKey(t, access.NewAPIKey{Name: "fresh", Scope: "read"})
		require.Equal(t, http.StatusOK, meanwhile(t, app, http.MethodGet, "/v1/boards", fresh, ""), "a key is looked up")
	}
	statuses := map[int]int{}
	for range cap(answers) {
		a := <-answers
		require.NotNil(t, a, "it was answered")
		require.NotEmpty(t, a.Header.Get("Retry-After"))
		statuses[a.Status]++
	}
	require.GreaterOrEqual(t, statuses[http.StatusServiceUnavailable], 4, "those that waited for the row")
	require.Equal(t, 200, statuses[http.StatusServiceUnavailable]+statuses[http.StatusTooManyRequests], "%v", statuses)
	release()
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "u-1"}).Status)
}

func TestEveryRequestIsAnsweredWhileTheDatabaseStandsStill(t *testing.T) {
	tier.Slow(t, "holds 96 connections to the database")
	t.Parallel()
	// One connection for each operation, half of them for the organization's changes.
	app := apptest.Start(t, apptest.Options{DatabaseURL: testkit.ImpatientDatabase(t), Environ: []string{"EARSHOT_DATABASE_MAX_CONNS=96"}})
	n := newFixture(t, app)
	operations := load(t).operations()
	release := locked(t, app, "LOCK TABLE "+everyTable(t, app)+" IN ACCESS EXCLUSIVE MODE")
	var (
		all     sync.WaitGroup
		mu      sync.Mutex
		answers = map[string]apptest.Answer{}
	)
	for where, o := range operations {
		path, body := o.filled(t, n.ids), o.request(t)
		all.Go(func() {
			a := n.Do(t, o.method, path, body)
			mu.Lock()
			defer mu.Unlock()
			answers[where] = a
		})
	}
	all.Wait()
	require.Len(t, answers, len(operations))
	for where, a := range answers {
		if where != "GET /v1/me" || a.Status != http.StatusOK { // the owner of the key may be cached
			requireUnavailable(t, where, a)
		}
	}
	release()
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, "/v1/boards", nil).Status)
}

func TestARequestThatOutlivesItsDeadlineIsAnsweredAndChangesNothing(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := newFixture(t, app)
	handler, err := api.New(app.UseCases, api.Options{RateLimits: ratelimit.NewKeys(app.Store, 100), Work: brief, Log: testkit.Log(t)})
	require.NoError(t, err)
	release := hold(t, app, n.ids["postId"])
	unchanged := n.Watch(t)
	r := httptest.NewRequest(http.MethodPatch, "/v1/posts/"+n.ids["postId"], strings.NewReader(`{"title":"Late"}`))
	r.Header.Set("Authorization", "Bearer "+n.Key)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	require.Equal(t, http.StatusServiceUnavailable, w.Code, w.Body)
	require.Contains(t, w.Body.String(), "ERR_UNAVAILABLE")
	require.Equal(t, "5", w.Header().Get("Retry-After"))
	release()
	unchanged(t)
}

// Otherwise, a rotation would keep the requests of the key waiting.
func TestTheUseOfAKeyIsRecordedWithoutWaitingForALock(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := newFixture(t, app)
	key, made, err := app.Access.CreateAPIKey(n.Context(t.Context()), access.NewAPIKey{
		User: n.Owner.ID, Name: "Fresh", Scope: "read",
	})
	require.NoError(t, err)
	release := locked(t, app, "SELECT FROM api_keys WHERE id = $1 FOR UPDATE", made.ID)
	require.Equal(t, http.StatusOK, meanwhile(t, app, http.MethodGet, "/v1/boards", key, ""))
	release()
}
