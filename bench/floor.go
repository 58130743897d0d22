package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// floor measures the least work that Postgres and Temporal need, without the code of Earshot.
type floor struct {
	pool     *pgxpool.Pool
	temporal client.Client
	worker   worker.Worker

	mu      sync.Mutex
	began   map[string]time.Time
	arrived latencies
	left    int
	done    chan struct{}
}

const (
	floorTable = "bench_floor"
	floorQueue = "earshot-bench"
	// The same size as a group of deliveries in the service.
	floorGroupSize = 60
)

func newFloor(ctx context.Context, pool *pgxpool.Pool, temporal client.Client) (*floor, error) {
	f := &floor{pool: pool, temporal: temporal}
	for _, sql := range []string{
		"DROP TABLE IF EXISTS " + floorTable,
		"CREATE TABLE " + floorTable + " (id uuid PRIMARY KEY, external_id text UNIQUE, name text, seen timestamptz)",
		"INSERT INTO " + floorTable + " SELECT gen_random_uuid(), 'bench-' || n, 'Bench', now() FROM generate_series(0, $1 - 1) n",
	} {
		var args []any
		if sql[0] == 'I' {
			args = append(args, known)
		}
		if _, err := pool.Exec(ctx, sql, args...); err != nil {
			return nil, errors.Wrap(err, "make the floor's table")
		}
	}
	f.worker = worker.New(temporal, floorQueue, worker.Options{})
	f.worker.RegisterWorkflowWithOptions(floorWorkflowFn, workflow.RegisterOptions{Name: "bench_floor"})
	f.worker.RegisterActivityWithOptions(f.arrive, activity.RegisterOptions{Name: "bench_arrive"})
	if err := f.worker.Start(); err != nil {
		return nil, errors.Wrap(err, "start the floor's worker")
	}
	return f, nil
}

func (f *floor) close(ctx context.Context) {
	f.worker.Stop()
	_, _ = f.pool.Exec(ctx, "DROP TABLE IF EXISTS "+floorTable)
}

// identify runs one transaction with an indexed select and a single-row update.
func (f *floor) identify(ctx context.Context, i int) error {
	tx, err := f.pool.Begin(ctx)
	if err != nil {
		return errors.Wrap(err, "begin")
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	var id uuid.UUID
	var name string
	row := tx.QueryRow(ctx, "SELECT id, name FROM "+floorTable+" WHERE external_id = $1", fmt.Sprintf("bench-%d", i%known))
	if err := row.Scan(&id, &name); err != nil {
		return errors.Wrap(err, "select")
	}
	if _, err := tx.Exec(ctx, "UPDATE "+floorTable+" SET seen = now() WHERE id = $1", id); err != nil {
		return errors.Wrap(err, "update")
	}
	if err := tx.Commit(ctx); err != nil {
		return errors.Wrap(err, "commit")
	}
	return nil
}

// floorWorkflowFn runs one local activity in its first workflow task.
func floorWorkflowFn(ctx workflow.Context, ids []string) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: 10 * time.Second})
	return workflow.ExecuteLocalActivity(ctx, "bench_arrive", ids).Get(ctx, nil)
}

func (f *floor) arrive(_ context.Context, ids []string) error {
	at := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		began, ok := f.began[id]
		if !ok {
			continue // of a run that was cancelled
		}
		delete(f.began, id)
		f.arrived.add(at.Sub(began))
		if f.left--; f.left == 0 {
			close(f.done)
		}
	}
	return nil
}

// workflows starts n items in groups of the given size. It measures the time until each item
// reaches its activity.
func (f *floor) workflows(ctx context.Context, n, goroutines, size int) (*latencies, error) {
	f.expect(n)
	_, err := burst(ctx, (n+size-1)/size, goroutines, func(ctx context.Context, i int) error {
		return f.start(ctx, min(size, n-i*size), time.Now())
	})
	return f.await(ctx, n, err)
}

// workflowsAt starts a workflow for each item at the time when the item is due.
func (f *floor) workflowsAt(ctx context.Context, rate int, period time.Duration) (*latencies, error) {
	n := arrivals(rate, period)
	f.expect(n)
	_, err := openLoop(ctx, rate, period, func(ctx context.Context, _ int, due time.Time) error { return f.start(ctx, 1, due) })
	return f.await(ctx, n, err)
}

func (f *floor) expect(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.began, f.arrived.all, f.left, f.done = map[string]time.Time{}, nil, n, make(chan struct{})
}

// start starts one workflow for size items. The latency of the items counts from since.
func (f *floor) start(ctx context.Context, size int, since time.Time) error {
	ids := make([]string, size)
	f.mu.Lock()
	for i := range ids {
		ids[i] = uuid.NewString()
		f.began[ids[i]] = since
	}
	f.mu.Unlock()
	_, err := f.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: ids[0], TaskQueue: floorQueue, EnableEagerStart: true,
	}, "bench_floor", ids)
	return err
}

func (f *floor) await(ctx context.Context, n int, started error) (*latencies, error) {
	if started != nil {
		return nil, errors.Wrap(started, "start a workflow")
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(arrivalTimeout):
		return nil, errors.Errorf("%d of %d never arrived", f.left, n)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return &latencies{all: f.arrived.all}, nil
}
