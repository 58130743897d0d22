package retention_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/ent/db/organization"
	"earshot/internal/delivery"
	"earshot/internal/postgres"
	"earshot/internal/retention"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

var retained = flag.Int("retained", 100_000, "deliveries, with an event and an attempt each, that BenchmarkRetention removes")

// fillSQL makes rows of two months ago, a thousand for each second. Each is an event of 300 bytes
// with its delivery to one of 20 webhooks and its attempt.
var fillSQL = []string{
	`CREATE TEMP TABLE old AS
	 SELECT n, lpad(to_hex((extract(epoch FROM now() - interval '60 days') * 1000)::bigint + n), 12, '0') AS at,
	   (now() - interval '60 days') + n * interval '1 ms' AS moment FROM generate_series(1, $1::int) AS n`,
	`INSERT INTO events (id, organization_id, created_at, type, payload)
	 SELECT (at || '7001' || '8' || lpad(to_hex(n), 15, '0'))::uuid, $1, moment, 'post.created', convert_to(repeat('x', 300), 'UTF8') FROM old`,
	`INSERT INTO deliveries (id, organization_id, created_at, webhook_id, event_id, event_type, status, attempt_count, last_attempt_at,
	   last_response_status, duration_ms, delivered_at, schedule_start, workflow_id, workflow_run_id)
	 SELECT (at || '7002' || '8' || lpad(to_hex(n), 15, '0'))::uuid, $1, moment, ($2::uuid[])[1 + n % 20],
	   (at || '7001' || '8' || lpad(to_hex(n), 15, '0'))::uuid, 'post.created', 'succeeded', 1, moment, 204, 12, moment, 0,
	   'dlv_01m81fykf5frm9adjjaxyxxm73+41', gen_random_uuid()::text FROM old`,
	`INSERT INTO attempts (id, organization_id, delivery_id, number, started_at, duration_ms, response_status, response_body)
	 SELECT (at || '7003' || '8' || lpad(to_hex(n), 15, '0'))::uuid, $1, (at || '7002' || '8' || lpad(to_hex(n), 15, '0'))::uuid, 1, moment, 12, 204,
	   convert_to('ok', 'UTF8') FROM old`,
}

func fill(b *testing.B, pool *pgxpool.Pool, o *outbox, n int) {
	b.Helper()
	c, err := pool.Acquire(b.Context())
	require.NoError(b, err)
	defer c.Release()
	var hooks []string
	for range 20 {
		hook := o.Store.Client().Webhook.Create().SetURL(fixture.HookURL).SetEvents([]string{"post.created"}).SetSecretSealed([]byte(fixture.Sealed)).SaveX(o.Ctx)
		hooks = append(hooks, hook.ID.UUID().String())
	}
	for i, statement := range fillSQL {
		args := [][]any{{n}, {o.Organization.UUID()}, {o.Organization.UUID(), hooks}, {o.Organization.UUID()}}[i]
		_, err := c.Exec(b.Context(), statement, args...)
		require.NoError(b, err)
	}
	_, err = c.Exec(b.Context(), "DROP TABLE old")
	require.NoError(b, err)
	_, err = c.Exec(b.Context(), "VACUUM ANALYZE events, deliveries, attempts")
	require.NoError(b, err)
}

// BenchmarkRetention measures three things:
//   - The rate at which the retention removes deliveries, with their attempts and events, without its
//     pauses.
//   - The processor time that its connection takes.
//   - The latency of claims and records that run at the same time.
//
// Run it with:
//
//	.earshot/bin/withstack -- go test ./internal/retention -run '^$' -bench Retention -benchtime 3x -retained 1000000
func BenchmarkRetention(b *testing.B) {
	url := testkit.Database(b)
	s, err := postgres.Open(postgres.Options{URL: url})
	require.NoError(b, err)
	b.Cleanup(s.Close)
	var seen fixture.Connections
	remover, err := postgres.Open(postgres.Options{URL: url, MaxConns: 1, Tracer: &seen})
	require.NoError(b, err)
	b.Cleanup(remover.Close)
	require.NoError(b, remover.Ping(b.Context()))
	backend, pool := seen.Last().PID(), fixture.PoolOf(b, url)
	made, err := s.Client().Organization.Create().SetName("Acme").SetPlan(organization.PlanBusiness).Save(s.Across("a benchmark").Context(b.Context()))
	require.NoError(b, err)
	o := &outbox{&fixture.Outbox{Store: s, Pool: pool, Ctx: postgres.WithOrganization(b.Context(), made.ID), Organization: made.ID}}
	o.Webhook = o.Store.Client().Webhook.Create().SetURL(fixture.HookURL).SetEvents([]string{"post.created"}).SetSecretSealed([]byte(fixture.Sealed)).SaveX(o.Ctx).ID
	o.Event = o.Store.Client().Event.Create().SetType("post.created").SetPayload([]byte(fixture.Payload)).SaveX(o.Ctx).ID
	for b.Loop() {
		b.StopTimer()
		fill(b, pool, o, *retained)
		b.StartTimer()
		alone := o.neighbour(b, func() { time.Sleep(5 * time.Second) })
		b.ReportMetric(float64(alone.Microseconds())/1000, "ms-p99-alone")
		for i, kind := range []retention.Expired{retention.ExpiredDeliveries, retention.ExpiredEvents} {
			name := []string{"deliveries", "events"}[i]
			began, removed, busy := time.Now(), 0, backendTime(b, backend)
			beside := o.neighbour(b, func() { removed = removeAll(b, remover, kind) })
			took := time.Since(began)
			b.ReportMetric(float64(removed)/took.Seconds(), name+"/s")
			b.ReportMetric(float64((backendTime(b, backend)-busy).Microseconds())/float64(removed), "µs-CPU/"+name)
			b.ReportMetric(float64(beside.Microseconds())/1000, "ms-p99-beside-"+name)
		}
		b.StopTimer()
		vacuum(b, pool)
		b.StartTimer()
	}
}

// vacuum logs the processor time of a vacuum of the removed rows, and the sizes of the tables after
// it. The next round reuses the free space.
func vacuum(b *testing.B, pool *pgxpool.Pool) {
	b.Helper()
	c, err := pool.Acquire(b.Context())
	require.NoError(b, err)
	defer c.Release()
	backend := c.Conn().PgConn().PID()
	for _, table := range []string{"deliveries", "attempts", "events"} {
		busy := backendTime(b, backend)
		_, err := c.Exec(b.Context(), "VACUUM "+table)
		require.NoError(b, err)
		var heap, indexes int
		err = c.QueryRow(b.Context(), "SELECT pg_table_size($1::regclass), pg_indexes_size($1::regclass)", table).Scan(&heap, &indexes)
		require.NoError(b, err)
		b.Logf("%s: the vacuum took %s of a processor; %d MB, indexes %d MB", table, backendTime(b, backend)-busy, heap>>20, indexes>>20)
	}
}

func removeAll(b *testing.B, s *postgres.DB, kind retention.Expired) (removed int) {
	b.Helper()
	for next := ""; ; {
		n, after, err := retention.RemoveExpired(b.Context(), s, kind, time.Now().Add(-month), next)
		require.NoError(b, err)
		removed += n
		if next = after; next == "" {
			return removed
		}
	}
}

// neighbour makes, claims and records deliveries, one after another, until do returns. It returns
// the 99th percentile of the time that one takes.
func (o *outbox) neighbour(b *testing.B, do func()) time.Duration {
	b.Helper()
	done := make(chan struct{})
	var all []time.Duration
	var loop sync.WaitGroup
	loop.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			began := time.Now()
			d, err := o.Store.Client().Delivery.Create().SetWebhookID(o.Webhook).SetEventID(o.Event).SetEventType("post.created").
				SetNextAttemptAt(fixture.Ago(0)).Save(o.Ctx)
			if !assert.NoError(b, err) {
				return
			}
			got, err := delivery.ClaimAll(o.Ctx, o.Store, []delivery.Claim{{ID: d.ID, Number: 1, WorkflowID: fixture.Run, Lease: fixture.Lease}})
			if !assert.NoError(b, err) {
				return
			}
			_, err = delivery.Record(o.Ctx, o.Store, []delivery.Result{{ID: d.ID, Number: 1, StartedAt: fixture.Ago(0), Response: 204, Lease: got[0].Lease}})
			if !assert.NoError(b, err) {
				return
			}
			all = append(all, time.Since(began))
			time.Sleep(2 * time.Millisecond)
		}
	})
	do()
	close(done)
	loop.Wait()
	slices.Sort(all)
	require.NotEmpty(b, all)
	return all[len(all)*99/100]
}

// backendTime is the processor time of the Postgres process that serves a connection. Postgres must
// run on this machine.
func backendTime(b *testing.B, pid uint32) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(b, err)
	_, after, _ := strings.Cut(string(text), ") ")
	var user, system int
	for i, field := range map[int]*int{11: &user, 12: &system} {
		*field, err = strconv.Atoi(strings.Fields(after)[i])
		require.NoError(b, err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond // ticks of 100 a second
}
