package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/go-faster/errors"

	"earshot/e2e/faults/check"
	"earshot/e2e/faults/ledger"
	"earshot/e2e/faults/receiver"
	"earshot/internal/devstack"
	"earshot/internal/devstack/process"
)

const (
	// quietTime bounds the wait for the last delivery. It covers a backlog of mostPending, and the
	// leases and retries of killed attempts. It also covers the five minutes after which the sweep no
	// longer trusts Temporal's list, and a sweep or two.
	quietTime = 8 * time.Minute
	// maxAttempts is the limit of attempts of a delivery. disabledAfter is how many permanent
	// failures in a row disable a webhook (specification, Delivery and retries).
	maxAttempts   = 5
	disabledAfter = 50
)

// run is a stack with its receiver, its tenants and their load.
type run struct {
	options  options
	report   devstack.Report
	dir      string
	stack    *stack
	kills    *kills
	load     *load
	receiver *receiver.Receiver
	ledger   *ledger.Writer

	server      *http.Server
	receiverURL string

	// plain has one healthy receiver. mixed also has a slow, a flaky and a dead one. The receiver of
	// probe holds its answers back, and the one of broken is dead until recover makes it healthy.
	plain, mixed, probe, broken *tenant
	probed, fails               hook
	// endpoints maps the ids of all webhooks to the receiver's names of them.
	endpoints map[string]string
	// outsiders act on public boards. It is nil before the first part that uses them.
	outsiders *outsiders
	// mayFail are the endpoints that are dead at any time.
	mayFail []string
}

// open starts a stack in the directory and makes the tenants.
func open(ctx context.Context, o options, dir, program string, report devstack.Report) (_ *run, err error) {
	r := &run{options: o, report: report, dir: dir, kills: &kills{}, endpoints: map[string]string{}}
	r.load = &load{run: r, most: mostPending}
	if o.production {
		r.load.most = mostPendingProduction
	}
	defer func() {
		if err != nil {
			r.close(false)
		}
	}()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, errors.Wrap(err, "make a directory")
	}
	if err := r.listen(); err != nil {
		return nil, err
	}
	if r.stack, err = startStack(ctx, o.production, dir, program, report); err != nil {
		return nil, err
	}
	r.stack.watchTemporal(r.kills)
	for name, t := range map[string]**tenant{"plain": &r.plain, afresh: &r.mixed, "broken": &r.broken} {
		if *t, err = r.newTenant(ctx, name, r.stack.url); err != nil {
			return nil, err
		}
	}
	// Its writes must reach the API that the scenario kills.
	if r.probe, err = r.newTenant(ctx, "probe", r.stack.apis[0].url()); err != nil {
		return nil, err
	}
	return r, r.subscribeAll(ctx)
}

// listen starts the receiver, which is never killed.
func (r *run) listen() (err error) {
	if r.ledger, err = ledger.Create(r.ledgerPath()); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Wrap(err, "listen for webhooks")
	}
	r.receiver = receiver.New(r.ledger)
	r.receiverURL = "http://" + listener.Addr().String()
	r.server = &http.Server{Handler: r.receiver, ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(listener) }() // Serve ends with close.
	return nil
}

func (r *run) ledgerPath() string { return filepath.Join(r.dir, "ledger.jsonl") }

func (r *run) subscribeAll(ctx context.Context) (err error) {
	for _, wanted := range []struct {
		of *tenant
		b  receiver.Behaviour
		as *hook
	}{
		{of: r.plain, b: receiver.Healthy},
		{of: r.mixed, b: receiver.Healthy},
		{of: r.mixed, b: receiver.Slow},
		{of: r.mixed, b: receiver.Flaky},
		{of: r.mixed, b: receiver.Dead},
		{of: r.probe, b: receiver.Held, as: &r.probed},
		// An event is written only if an enabled webhook subscribes to it. This webhook stays
		// enabled.
		{of: r.broken, b: receiver.Healthy},
		{of: r.broken, b: receiver.Dead, as: &r.fails},
	} {
		h, err := r.subscribe(ctx, wanted.of, wanted.b)
		if err != nil {
			return err
		}
		if wanted.b == receiver.Dead {
			r.mayFail = append(r.mayFail, h.endpoint)
		}
		if wanted.as != nil {
			*wanted.as = h
		}
	}
	return nil
}

// trials is how often a timed scenario runs.
func (r *run) trials() int {
	if r.options.short {
		return 1
	}
	return 5
}

// underLoad does something while events are written.
func (r *run) underLoad(ctx context.Context, do func(ctx context.Context) error) error {
	loading, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.load.until(loading, 0)
	}()
	err := do(ctx)
	stop()
	<-ended
	return err
}

// quiet waits until every delivery and recovery has ended, every link is mailed and the expired
// rows are gone.
func (r *run) quiet(whole context.Context, f *figures) error {
	ctx, cancel := context.WithTimeout(whole, quietTime)
	defer cancel()
	for {
		n, err := r.pending(ctx)
		if n == 0 && err == nil {
			n, err = r.number(ctx, `SELECT (SELECT count(*) FROM deliveries WHERE created_at < now() - interval '30 days')
				+ (SELECT count(*) FROM recoveries WHERE status = 'running')
				+ (SELECT count(*) FROM interactions WHERE due_at < expires_at)`) // Their links weren't mailed yet.
		}
		if n == 0 && err == nil {
			return nil
		}
		if err := pause(ctx, time.Second); err != nil {
			if whole.Err() == nil {
				f.violation("%d are still pending after %s: %s", n, quietTime, r.waiting(whole))
			}
			return whole.Err()
		}
	}
}

// waiting describes up to ten of the rows that keep a run from being quiet.
func (r *run) waiting(ctx context.Context) string {
	var rows string
	err := r.ask(ctx, []any{&rows}, `SELECT coalesce(string_agg(what, '; '), 'none by now') FROM (
		SELECT format('delivery %s of run %s, %s attempts, due at %s, lease until %s', id, workflow_id, attempt_count, next_attempt_at, lease_until) AS what
		FROM deliveries WHERE status = 'pending'
		UNION ALL SELECT format('recovery %s', id) FROM recoveries WHERE status = 'running'
		UNION ALL SELECT format('interaction %s, due at %s, made at %s', id, due_at, created_at) FROM interactions WHERE due_at < expires_at
		LIMIT 10) AS waiting`)
	if err != nil {
		return err.Error()
	}
	return rows
}

// check waits for quiet and compares the ledger with the database.
func (r *run) check(ctx context.Context, f *figures) (check.Report, error) {
	if r.outsiders != nil {
		r.report("waiting for end-users to come to an end")
		r.outsiders.end()
	}
	r.report("waiting for quiet")
	if err := r.quiet(ctx, f); err != nil {
		return check.Report{}, err
	}
	if r.outsiders != nil {
		if err := r.outsiders.judge(ctx, f); err != nil {
			return check.Report{}, errors.Wrap(err, "judge what end-users did")
		}
	}
	if err := r.receiver.Err(); err != nil {
		return check.Report{}, err
	}
	return check.Run(ctx, check.Input{
		LedgerPath: r.ledgerPath(), Database: r.stack.direct, Endpoints: r.endpoints,
		Acknowledged: r.load.acknowledged(), Kills: r.kills.list(),
		MaxAttempts: maxAttempts, DisabledAfter: disabledAfter, MayFail: r.mayFail, Erased: r.outsiders.erased(),
	})
}

// tellLogs reports the end of each log of a run that got stuck, because the logs are removed with
// it.
func (r *run) tellLogs(ctx context.Context) {
	if ctx.Err() != nil {
		return // The operator ended the run.
	}
	for _, p := range r.stack.services {
		r.report("the end of the log of %s:\n%s", p.name, process.Tail(p.log))
	}
}

// close stops everything. The databases stay if something was found.
func (r *run) close(found bool) {
	if r.outsiders != nil {
		r.outsiders.end()
	}
	if r.stack != nil {
		r.stack.stop(found)
	}
	if r.server != nil {
		_ = r.server.Close()
	}
	if r.ledger != nil {
		_ = r.ledger.Close()
	}
}
