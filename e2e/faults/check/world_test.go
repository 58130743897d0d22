package check_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"earshot/e2e/faults/check"
	"earshot/e2e/faults/ledger"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// at returns a time of a world, in seconds since its beginning.
func at(s float64) time.Time {
	return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
}

// world is the state after a run: rows, a ledger and the harness's records. The test makes all of
// it by hand, without the service.
type world struct {
	t    *testing.T
	pool *pgxpool.Pool // of the database. Copies share its connections, which take longer than most rules.
	db   database
	in   check.Input

	entries  []ledger.Entry
	requests int64

	organization publicid.Organization
	board        publicid.Board
	hooks        map[string]publicid.Webhook
	posts        map[string]publicid.Post
	events       map[string]publicid.Event
	bodies       map[string]string
	deliveries   map[string]publicid.Delivery
	of           map[string][2]string // a delivery's event and webhook
}

// database is the pool, or the transaction of a copy.
type database interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, in: check.Input{Database: testkit.Database(t), MaxAttempts: 5, DisabledAfter: 1, MayFail: []string{"dead"}, Endpoints: map[string]string{}},
		organization: publicid.NewOrganization(), board: publicid.NewBoard(),
		hooks: map[string]publicid.Webhook{}, posts: map[string]publicid.Post{}, events: map[string]publicid.Event{},
		bodies: map[string]string{}, deliveries: map[string]publicid.Delivery{}, of: map[string][2]string{},
	}
	pool, err := pgxpool.New(t.Context(), w.in.Database)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	w.pool, w.db = pool, pool
	w.exec(`INSERT INTO organizations (id, created_at, updated_at, name) VALUES ($1, $2, $2, 'Acme')`,
		w.organization, at(0))
	w.exec(`INSERT INTO boards (id, organization_id, created_at, updated_at, name, slug)
		VALUES ($1, $2, $3, $3, 'Ideas', 'ideas')`, w.board, w.organization, at(0))
	return w
}

// copy is an independent world in a transaction that is rolled back, which is much cheaper than a
// database.
func (w *world) copy(t *testing.T) *world {
	t.Helper()
	tx, err := w.pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	c := *w
	c.t, c.db, c.entries = t, tx, slices.Clone(w.entries)
	c.in.Acknowledged = slices.Clone(w.in.Acknowledged)
	c.posts, c.events, c.bodies = maps.Clone(w.posts), maps.Clone(w.events), maps.Clone(w.bodies)
	c.deliveries, c.of = maps.Clone(w.deliveries), maps.Clone(w.of)
	return &c
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.db.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
}

func (w *world) webhook(name string, events ...string) {
	w.hooks[name] = publicid.NewWebhook()
	w.exec(`INSERT INTO webhooks (id, organization_id, created_at, updated_at, url, events, secret_sealed)
		VALUES ($1, $2, $3, $3, 'http://127.0.0.1:9', to_jsonb($4::text[]), '\x026b31')`,
		w.hooks[name], w.organization, at(1), events)
	w.in.Endpoints[w.hooks[name].String()] = name
}

// post makes an acknowledged post with its event.
func (w *world) post(name string, s float64) {
	w.posts[name] = publicid.NewPost()
	w.exec(`INSERT INTO posts (id, organization_id, created_at, updated_at, title, slug, last_activity_at, board_id)
		VALUES ($1, $2, $3, $3, $4, $4, $3, $5)`, w.posts[name], w.organization, at(s), name, w.board)
	w.event(name, s, "post.created", fmt.Sprintf(`{"event":"post.created","post":{"id":"%s"}}`, w.posts[name]))
	w.acknowledge(name, "post.created", s+0.05)
}

func (w *world) acknowledge(post, eventType string, s float64) {
	w.in.Acknowledged = append(w.in.Acknowledged, check.Write{Subject: w.posts[post].String(), Type: eventType, At: at(s)})
}

func (w *world) event(name string, s float64, eventType, body string) {
	w.events[name], w.bodies[name] = publicid.NewEvent(), body
	w.exec(`INSERT INTO events (id, organization_id, created_at, type, payload) VALUES ($1, $2, $3, $4, $5)`,
		w.events[name], w.organization, at(s), eventType, []byte(body))
}

// deliver makes a pending delivery, named after its event and webhook.
func (w *world) deliver(event, hook string, s float64) string {
	name := event + " to " + hook
	w.delivery(name, event, hook, s)
	return name
}

func (w *world) delivery(name, event, hook string, s float64) {
	w.deliveries[name], w.of[name] = publicid.NewDelivery(), [2]string{event, hook}
	w.exec(`INSERT INTO deliveries (id, organization_id, created_at, event_type, next_attempt_at, webhook_id, event_id)
		SELECT $1, $2, $3, type, $3, $4, id FROM events WHERE id = $5`,
		w.deliveries[name], w.organization, at(s), w.hooks[hook], w.events[event])
}

// receive adds a request that arrives and is answered 10 ms later. Status 0 means that it breaks.
func (w *world) receive(delivery string, s float64, status int) {
	w.requests++
	of := w.of[delivery]
	e := ledger.Entry{
		At: at(s), Kind: ledger.Arrived, Request: w.requests, Endpoint: of[1], Delivery: w.deliveries[delivery].String(),
		Event: "post.created", Sum: sumOf(w.bodies[of[0]]), Signed: true,
	}
	if of[0] == "test" {
		e.Event = "webhook.test"
	}
	w.entries = append(w.entries, e)
	e.At, e.Kind, e.Status = at(s+0.01), ledger.Answered, status
	if status == 0 {
		e.Kind = ledger.Broken
	}
	w.entries = append(w.entries, e)
}

func sumOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// attempt makes an attempt that arrives after 5 ms, ends after 20 ms and is recorded.
func (w *world) attempt(delivery string, number int, s float64, status int) {
	w.receive(delivery, s+0.005, status)
	w.record(delivery, number, s, status)
}

func (w *world) record(delivery string, number int, s float64, status int) {
	var failure *string
	if status/100 != 2 {
		failure = new("http_status")
	}
	w.exec(`INSERT INTO attempts
		(id, organization_id, number, started_at, duration_ms, response_status, error, delivery_id)
		VALUES ($1, $2, $3, $4, 20, $5, $6, $7)`,
		publicid.NewAttempt(), w.organization, number, at(s), status, failure, w.deliveries[delivery])
	w.exec(`UPDATE deliveries SET attempt_count = $2, last_attempt_at = $3, last_response_status = $4, last_error = $5,
		duration_ms = 20 WHERE id = $1`, w.deliveries[delivery], number, at(s), status, failure)
}

func (w *world) succeed(delivery string, s float64) {
	w.exec(`UPDATE deliveries SET status = 'succeeded', delivered_at = $2, next_attempt_at = NULL WHERE id = $1`,
		w.deliveries[delivery], at(s))
}

// fail ends a delivery with the given error, or with its last attempt's error.
func (w *world) fail(delivery string, s float64, reason string) {
	w.exec(`UPDATE deliveries SET status = 'failed', failed_at = $2, next_attempt_at = NULL,
		last_error = coalesce(nullif($3, ''), last_error) WHERE id = $1`, w.deliveries[delivery], at(s), reason)
}

// recovery makes a recovery of all deliveries to the dead webhook that failed before it.
func (w *world) recovery(status string, s float64) {
	w.exec(`INSERT INTO recoveries (id, organization_id, webhook_id, created_at, since, until, status, ended_at)
		VALUES ($1, $2, $3, $4, $5, $4, $6, $4)`,
		publicid.NewRecovery(), w.organization, w.hooks["dead"], at(s), at(0), status)
}

// input writes the ledger file and returns the checker's input.
func (w *world) input() check.Input {
	w.t.Helper()
	w.in.LedgerPath = filepath.Join(w.t.TempDir(), "ledger.jsonl")
	l, err := ledger.Create(w.in.LedgerPath)
	require.NoError(w.t, err)
	for _, e := range w.entries {
		require.NoError(w.t, l.Append(e))
	}
	require.NoError(w.t, l.Close())
	return w.in
}
