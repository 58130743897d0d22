package store_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/delivery"
	"earshot/internal/publicid"
	"earshot/internal/store"
	"earshot/internal/testkit"
)

// outbox is an organization with a webhook and an event for it.
type outbox struct {
	t     *testing.T
	store *store.Store
	pool  *pgxpool.Pool   // for statements that the store doesn't have
	ctx   context.Context // of the organization

	organization publicid.Organization
	webhook      publicid.Webhook
	event        publicid.Event
}

const (
	hookURL = "https://example.com/hook"
	// Neither the payload nor the secret is UTF-8: both must come back as the same bytes.
	payload = "{\"event\":\"post.created\",\"n\":9007199254740993}\xff\x00"
	sealed  = "\x02k1\x00\xff"
	lease   = time.Minute
	run     = "dlv_run"
)

// outboxes is the database shared by all tests that only read their own organization.
var outboxes = sync.OnceValues(func() (url string, err error) { return testkit.NewDatabase(context.Background()) })

func newOutbox(t *testing.T) *outbox {
	t.Helper()
	url, err := outboxes()
	require.NoError(t, err)
	return another(t, open(t, url), poolOf(t, url))
}

// newOutboxAlone has its own database, for a test that reads all organizations.
func newOutboxAlone(t *testing.T) *outbox {
	t.Helper()
	url := testkit.Database(t)
	return another(t, open(t, url), poolOf(t, url))
}

// poolOf is a second pool, for statements that the store doesn't have. Like the store, it reads
// times in UTC.
func poolOf(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	config.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		c.TypeMap().RegisterType(&pgtype.Type{
			Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
		})
		return nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// another creates an outbox for a new organization in the same database.
func another(t *testing.T, s *store.Store, pool *pgxpool.Pool) *outbox {
	t.Helper()
	o := &outbox{t: t, store: s, pool: pool}
	o.ctx, o.organization = newOrganization(t, s)
	hook, err := s.Client().Webhook.Create().SetURL(hookURL).SetEvents([]string{"post.created"}).SetSecretSealed([]byte(sealed)).Save(o.ctx)
	require.NoError(t, err)
	happened, err := s.Client().Event.Create().SetType("post.created").SetPayload([]byte(payload)).Save(o.ctx)
	require.NoError(t, err)
	o.webhook, o.event = hook.ID, happened.ID
	return o
}

// delivery creates a pending delivery that is due. Change can modify it.
func (o *outbox) delivery(change ...func(*db.DeliveryCreate)) publicid.Delivery {
	o.t.Helper()
	create := o.store.Client().Delivery.Create().
		SetWebhookID(o.webhook).SetEventID(o.event).SetEventType("post.created").SetNextAttemptAt(ago(0))
	for _, c := range change {
		c(create)
	}
	made, err := create.Save(o.ctx)
	require.NoError(o.t, err)
	return made.ID
}

func (o *outbox) row(id publicid.Delivery) *db.Delivery {
	o.t.Helper()
	found, err := o.store.Client().Delivery.Get(o.ctx, id)
	require.NoError(o.t, err)
	return found
}

func (o *outbox) update(id publicid.Delivery) *db.DeliveryUpdateOne {
	return o.store.Client().Delivery.UpdateOneID(id)
}

// claim claims one attempt.
func (o *outbox) claim(id publicid.Delivery, number int) store.Claimed {
	o.t.Helper()
	got := o.claimAll(store.Claim{ID: id, Number: number, WorkflowID: run, Lease: lease})
	return got[0]
}

func (o *outbox) claimAll(claims ...store.Claim) []store.Claimed {
	o.t.Helper()
	got, err := o.store.ClaimDeliveries(o.t.Context(), claims)
	require.NoError(o.t, err)
	require.Len(o.t, got, len(claims))
	return got
}

// attempts returns the recorded attempts of a delivery.
func (o *outbox) attempts(id publicid.Delivery) []*db.Attempt {
	o.t.Helper()
	all, err := o.store.Client().Attempt.Query().All(o.ctx)
	require.NoError(o.t, err)
	var own []*db.Attempt
	for _, a := range all {
		if a.DeliveryID == id {
			own = append(own, a)
		}
	}
	return own
}

// record records results and reports which of them changed their webhook's streak.
func (o *outbox) record(results ...store.Result) []bool {
	o.t.Helper()
	moved, err := o.store.RecordResults(o.t.Context(), o.claimed(results...))
	require.NoError(o.t, err)
	return moved
}

// claimed sets the lease of results that have none to the lease of their delivery. A pending
// delivery without a lease gets one first, regardless of the attempt's number.
func (o *outbox) claimed(results ...store.Result) []store.Result {
	o.t.Helper()
	for i, r := range results {
		if !r.Lease.IsZero() {
			continue
		}
		_, err := o.pool.Exec(o.t.Context(), `UPDATE deliveries SET lease_until = now() + make_interval(secs => $1)
			WHERE id = $2 AND lease_until IS NULL AND status = 'pending'`, lease.Seconds(), r.ID.UUID())
		require.NoError(o.t, err)
		err = o.pool.QueryRow(o.t.Context(), "SELECT lease_until FROM deliveries WHERE id = $1 AND lease_until IS NOT NULL",
			r.ID.UUID()).Scan(&results[i].Lease)
		if !errors.Is(err, pgx.ErrNoRows) {
			require.NoError(o.t, err)
		}
	}
	return results
}

// ago is a time in the past with the database's precision.
func ago(d time.Duration) time.Time { return time.Now().UTC().Add(-d).Truncate(time.Microsecond) }

// ended makes a delivery that has ended.
func ended(status delivery.Status) func(*db.DeliveryCreate) {
	return func(c *db.DeliveryCreate) {
		c.SetStatus(status).SetAttemptCount(1)
		c.Mutation().ClearNextAttemptAt()
	}
}
