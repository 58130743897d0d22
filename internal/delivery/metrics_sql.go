package delivery

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-faster/errors"
	"go.opentelemetry.io/otel/attribute"

	"earshot/internal/postgres"
	"earshot/internal/telemetry"
)

const (
	// rememberState is the time for which a process caches the state of the outbox, regardless of
	// how often it is scraped. All processes read the same state.
	rememberState = 15 * time.Second
	// stateTimeout is below a scraper's timeout. Without an answer the gauges are left out. A
	// separate check reports that Postgres is down.
	stateTimeout = 2 * time.Second
)

// outboxState is the state of all deliveries and webhooks.
type outboxState struct {
	// Unstarted and Overdue are ages in seconds: the time since the oldest delivery without a
	// workflow was created, and the time since the most overdue attempt was due.
	Unstarted, Overdue float64
	// Requested and Failing count disabled webhooks: by their owner, and after 50 failures. Streaks
	// counts enabled webhooks that have failures.
	Requested, Failing, Streaks float64
}

// The statement reads the oldest 10,000 due deliveries in the order of an index. A delivery with an
// attempt in flight isn't overdue, and a delivery to a deleted webhook isn't due. While more than
// 10,000 deliveries of deleted webhooks wait for their removal, they can hide other due deliveries.
const outboxStateSQL = `
WITH oldest AS (
  SELECT webhook_id, created_at, next_attempt_at, workflow_id, lease_until FROM deliveries
  WHERE status = 'pending' AND next_attempt_at < now()
  ORDER BY next_attempt_at LIMIT 10000
), due AS (
  SELECT oldest.* FROM oldest JOIN webhooks h ON h.id = webhook_id WHERE h.deleted_at IS NULL
), outbox AS (
  SELECT
    coalesce(extract(epoch FROM now() - min(created_at) FILTER (WHERE workflow_id IS NULL)), 0)::float8 AS unstarted,
    coalesce(extract(epoch FROM now() - min(next_attempt_at) FILTER (WHERE lease_until IS NULL OR lease_until < now())), 0)::float8
      AS overdue
  FROM due
)
SELECT unstarted, overdue,
  (SELECT count(*) FROM webhooks WHERE NOT enabled AND deleted_at IS NULL AND disabled_reason IS DISTINCT FROM 'failures')::float8,
  (SELECT count(*) FROM webhooks WHERE NOT enabled AND deleted_at IS NULL AND disabled_reason = 'failures')::float8,
  (SELECT count(*) FROM webhooks WHERE enabled AND consecutive_failures > 0)::float8
FROM outbox`

// readOutbox reads the rows of all organizations, for the service's own metrics.
func readOutbox(ctx context.Context, s *postgres.DB) (o outboxState, err error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	err = s.Across("metrics of the service").QueryRow(ctx, outboxStateSQL).Scan(&o.Unstarted, &o.Overdue, &o.Requested, &o.Failing, &o.Streaks)
	if err != nil {
		return o, errors.Wrap(err, "look at the outbox")
	}
	return o, nil
}

// remembered is the cached state.
type remembered struct {
	mu    sync.Mutex
	until time.Time
	state outboxState
	there bool
}

func (r *remembered) get(s *postgres.DB, log *slog.Logger) (outboxState, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.until) {
		return r.state, r.there
	}
	var err error
	if r.state, err = readOutbox(context.Background(), s); err != nil {
		log.Warn("metrics of the outbox can't be read", "error", err)
	}
	r.there, r.until = err == nil, time.Now().Add(rememberState)
	return r.state, r.there
}

// Measure adds the outbox to the metrics of the process.
func Measure(s *postgres.DB, metrics *telemetry.Metrics, log *slog.Logger) {
	m := metrics.Meter()
	last := &remembered{}
	gauge := func(name, help string, read func(o outboxState, set telemetry.Set)) {
		m.Gauge(name, help, func(set telemetry.Set) {
			if state, ok := last.get(s, log); ok {
				read(state, set)
			}
		})
	}
	gauge("earshot_oldest_unstarted_seconds", "Age of the oldest pending delivery that no workflow has taken on.",
		func(o outboxState, set telemetry.Set) { set(o.Unstarted) })
	gauge("earshot_oldest_overdue_seconds", "How long ago the attempt was due that is overdue longest and isn't in flight.",
		func(o outboxState, set telemetry.Set) { set(o.Overdue) })
	gauge("earshot_disabled_webhooks", "Webhooks that are disabled.", func(o outboxState, set telemetry.Set) {
		set(o.Requested, attribute.String("reason", "requested"))
		set(o.Failing, attribute.String("reason", "failures"))
	})
	gauge("earshot_failing_webhooks", "Enabled webhooks with a streak of failures.",
		func(o outboxState, set telemetry.Set) { set(o.Streaks) })
}
