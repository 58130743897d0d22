package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/devstack"
)

const (
	// namespace is the one that clients take by default.
	namespace = "default"
	// betweenRestarts is how many events are written before the next process is restarted:
	// balancer and connections are as usual again.
	betweenRestarts = 200
	// rounds of restarts; the short form has one.
	rounds = 3
)

// rollingFigures are of the part that restarts every process.
type rollingFigures struct {
	Restarts int `json:"restarts"`
	// Events were acknowledged meanwhile; Failed is how many requests weren't.
	Events int `json:"events"`
	Failed int `json:"failed"`
	// Took is from the signal until the next process was ready.
	Took spread `json:"took"`
}

// chooseServer has Temporal be what runs in production.
func (s *stack) chooseServer(ctx context.Context) error {
	programs, err := devstack.TemporalServerPrograms(ctx, repository, s.report)
	if err != nil {
		return err
	}
	s.temporalProgram = programs.Server
	s.startTemporal = func(ctx context.Context) (*devstack.Temporal, error) {
		return devstack.StartTemporalServer(ctx, devstack.TemporalServerOptions{
			Dir: filepath.Join(s.dir, "temporal"), Programs: programs, Database: s.postgres.URL("postgres"),
			Namespaces: []string{namespace}, Report: s.report,
		})
	}
	return nil
}

// quickstart plays the first five minutes of a customer through the balancer.
func (r *run) quickstart(ctx context.Context, f *figures) error {
	t, err := r.newTenant(ctx, "quickstart", r.stack.url)
	if err != nil {
		return err
	}
	dir := filepath.Join(r.dir, "quickstart")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return errors.Wrap(err, "make a directory")
	}
	// What `earshot up` leaves for it. There is no web UI here.
	settings := fmt.Sprintf("export EARSHOT_BASE_URL=%s EARSHOT_API_KEY=%s TEMPORAL_UI_URL=http://localhost:8080\n", r.stack.url, t.key)
	if err := os.WriteFile(filepath.Join(dir, "dev.env"), []byte(settings), 0o600); err != nil {
		return errors.Wrap(err, "write the settings")
	}
	began := time.Now()
	cmd := exec.CommandContext(ctx, filepath.Join(repository, "examples", "quickstart.sh"))
	cmd.Env = append(cleanEnviron(), "EARSHOT_DIR="+dir, "EARSHOT_BIN="+r.stack.program)
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Wrapf(err, "play the quickstart: %s", out)
	}
	f.Quickstart = time.Since(began)
	r.report("the quickstart took %s", f.Quickstart.Round(time.Millisecond))
	return nil
}

// rolling restarts each process in order while events are written, and holds that no
// request failed.
func (r *run) rolling(ctx context.Context, f *figures) error {
	n := rounds
	if r.options.short {
		n = 1
	}
	first, failed := len(r.load.acknowledged()), r.load.repeated.Load()
	var took []time.Duration
	err := r.underLoad(ctx, func(ctx context.Context) error {
		for range n {
			for _, p := range r.stack.services {
				if err := r.awaitEvents(ctx, betweenRestarts); err != nil {
					return err
				}
				began := time.Now()
				if err := p.restart(ctx); err != nil {
					return err
				}
				took = append(took, time.Since(began))
				r.report("restarted %s in %s, %d requests failed so far",
					p.name, time.Since(began).Round(time.Millisecond), r.load.repeated.Load()-failed)
			}
		}
		return r.awaitEvents(ctx, betweenRestarts)
	})
	if err != nil {
		return err
	}
	f.Rolling = rollingFigures{
		Restarts: len(took), Took: spreadOf(took),
		Events: len(r.load.acknowledged()) - first, Failed: int(r.load.repeated.Load() - failed),
	}
	if f.Rolling.Failed > 0 {
		f.violation("%d requests failed while processes were restarted one after the other; the last: %s",
			f.Rolling.Failed, r.load.lastFailure())
	}
	return nil
}

// awaitEvents waits until so many further events were acknowledged.
func (r *run) awaitEvents(ctx context.Context, n int) error {
	until := len(r.load.acknowledged()) + n
	return await(ctx, "further events", func() bool { return len(r.load.acknowledged()) >= until })
}

// productionRows are printed of a stack for production.
func (f *figures) productionRows(row func(name, format string, args ...any)) {
	if f.Quickstart > 0 {
		row("quickstart through the balancer", "%s", f.Quickstart.Round(time.Millisecond))
	}
	if r := f.Rolling; r.Restarts > 0 {
		row("rolling restart", "%d processes, each back after %s", r.Restarts, r.Took)
		row("meanwhile", "%d events acknowledged, %d requests failed", r.Events, r.Failed)
	}
}
