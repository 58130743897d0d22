package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/e2e/faults/check"
	"earshot/internal/failpoint"
)

// figures is the result of a run. Durations are in nanoseconds in JSON.
type figures struct {
	// Quickstart and Rolling are measured only with -production.
	Quickstart  time.Duration  `json:"quickstart"`
	Rolling     rollingFigures `json:"rolling"`
	Postgres    string         `json:"postgres"`
	Temporal    string         `json:"temporal"`
	RetryDelays string         `json:"retryDelays"`
	KillEvery   time.Duration  `json:"killEvery"`
	// RandomEvents is how many events were acknowledged in the part with random kills, within
	// RandomTime.
	RandomEvents int           `json:"randomEvents"`
	RandomTime   time.Duration `json:"randomTime"`
	// Repeated counts the requests that got no answer or a temporary error, and were sent again.
	Repeated int64 `json:"repeated"`
	// Replayed counts the repeated requests with an Idempotency-Key that had already taken effect.
	Replayed int64 `json:"replayed"`
	// Kills counts the faults by kind, for example "postgres" or "disk full".
	Kills map[string]int `json:"kills"`
	// Points are the failpoints at which a process was killed.
	Points []string `json:"points"`
	// CommitToStart is the time from the restart, after a kill between commit and start, to the
	// first attempt. Redone is the time from a kill during an attempt to the next attempt.
	CommitToStart spread         `json:"commitToStart"`
	Redone        spread         `json:"redone"`
	DiskFull      string         `json:"diskFull"`
	Hostile       hostileFigures `json:"hostile"`
	// Outside has the figures of end-users and of the client that keeps a copy.
	Outside outsideFigures `json:"outside"`
	// Unasked counts the service's processes that ended without being killed.
	Unasked int `json:"unasked"`
	// Checks has one report for each check. A report covers everything that its stack has done so
	// far.
	Checks     []checked `json:"checks"`
	Violations []string  `json:"violations"`
}

type checked struct {
	After  string       `json:"after"`
	Report check.Report `json:"report"`
}

// spread sums up repeated measurements of one duration.
type spread struct {
	Times int           `json:"times"`
	P50   time.Duration `json:"p50"`
	Max   time.Duration `json:"max"`
}

func spreadOf(took []time.Duration) spread {
	if len(took) == 0 {
		return spread{}
	}
	slices.Sort(took)
	return spread{Times: len(took), P50: took[(len(took)-1)/2], Max: took[len(took)-1]}
}

func (s spread) String() string {
	return fmt.Sprintf("p50 %s, max %s, of %d", s.P50.Round(time.Millisecond), s.Max.Round(time.Millisecond), s.Times)
}

// versions reads the versions of Postgres and Temporal.
func (f *figures) versions(ctx context.Context, r *run) error {
	conn, err := pgx.Connect(ctx, r.stack.direct)
	if err != nil {
		return errors.Wrap(err, "connect")
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := conn.QueryRow(ctx, "SHOW server_version").Scan(&f.Postgres); err != nil {
		return errors.Wrap(err, "ask for Postgres's version")
	}
	out, err := exec.CommandContext(ctx, r.stack.temporalProgram, "--version").Output()
	if err != nil {
		return errors.Wrap(err, "ask for Temporal's version")
	}
	f.Temporal = strings.TrimSpace(strings.TrimPrefix(string(out), "temporal version"))
	return nil
}

// violation records a broken guarantee.
func (f *figures) violation(format string, args ...any) {
	f.Violations = append(f.Violations, fmt.Sprintf(format, args...))
}

// anything reports whether the databases are worth keeping: there is a violation, or an error that
// isn't due to the end of the context.
func (f *figures) anything(ctx context.Context, err error) bool {
	return f != nil && len(f.Violations) > 0 || err != nil && ctx.Err() == nil
}

// take checks a stack after a part and adds the report to the figures.
func (f *figures) take(ctx context.Context, after string, r *run) error {
	report, err := r.check(ctx, f)
	if err != nil {
		return errors.Wrap(err, "check")
	}
	for _, v := range report.Violations {
		f.violation("after %s: %s", after, v)
	}
	f.Checks = append(f.Checks, checked{after, report})
	r.report("checked after %s: %d violations", after, report.ViolationsTotal)
	return nil
}

// count adds the figures of a stack after its last part.
func (f *figures) count(r *run) {
	f.Repeated += r.load.repeated.Load()
	f.Replayed += r.plain.replayed.Load() + r.mixed.replayed.Load()
	for _, p := range r.stack.services {
		f.Unasked += p.unasked()
	}
	for _, k := range r.kills.list() {
		what, point, _ := strings.Cut(k.What, " at ")
		f.Kills[what]++
		if point != "" && !slices.Contains(f.Points, point) {
			f.Points = append(f.Points, point)
		}
	}
}

// missPoints records failpoints at which no process was killed.
func (f *figures) missPoints(o options) {
	points := len(failpoint.Points)
	if o.short {
		points = len(apiTrials()) + len(commonTrials())
	}
	if len(f.Points) < points {
		f.violation("processes were killed at %d failpoints of %d", len(f.Points), points)
	}
}

// missFaults records what the random part did not do, so that a run without faults cannot pass.
func (f *figures) missFaults(o options, r *run) {
	if f.RandomEvents < o.events {
		f.violation("%d events of %d happened under random kills", f.RandomEvents, o.events)
	}
	cuts, killed := 0, []string{"postgres", "temporal"}
	for what, n := range f.Kills {
		if strings.HasPrefix(what, "cut ") {
			cuts += n
		}
	}
	if cuts < 2 { // one that refuses and one that is silent
		f.violation("%d connections were cut", cuts)
	}
	for _, p := range r.stack.services {
		killed = append(killed, p.name)
	}
	for _, what := range killed {
		if f.Kills[what] == 0 {
			f.violation("%s was never killed", what)
		}
	}
	if f.Outside.Confirmed == 0 || f.Outside.Left == 0 || f.Outside.Copied == 0 {
		f.violation("no end-user confirmed, none was erased, or no copy was made: %+v", f.Outside)
	}
}

func (f *figures) text() string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-34s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("Postgres", "%s", f.Postgres)
	row("Temporal", "%s", f.Temporal)
	row("retry delays (shortened)", "%s", f.RetryDelays)
	f.productionRows(row)
	row("events under random kills", "%d in %s, a kill every %s and cuts beside them",
		f.RandomEvents, f.RandomTime.Round(time.Second), f.KillEvery)
	row("requests asked again", "%d", f.Repeated)
	row("of which the key had taken effect", "%d", f.Replayed)
	for _, what := range sortedKeys(f.Kills) {
		row("kills: "+what, "%d", f.Kills[what])
	}
	row("failpoints", "%d: %s", len(f.Points), strings.Join(f.Points, " "))
	row("full disk", "%s", f.DiskFull)
	f.Hostile.rows(row)
	f.Outside.rows(row)
	row("processes that ended by themselves", "%d", f.Unasked)
	row("commit → kill → first attempt", "%s (bound %s)", f.CommitToStart, startBound)
	row("attempt → kill → attempt again", "%s (bound %s)", f.Redone, redoneBound)
	if n := len(f.Checks); n > 0 {
		// Use the last check, because it covers everything that its stack did. These times include a
		// backlog, so they have no bound.
		under := f.Checks[n-1].Report
		row("under load: kill → first attempt", "%s after the restart of an API or a worker", under.Restarted)
		row("under load: attempt → attempt again", "%s", under.Redone)
	}
	for _, c := range f.Checks {
		c.Report.Violations, c.Report.ViolationsTotal = nil, 0 // All violations are printed below.
		said := strings.ReplaceAll(strings.TrimSpace(c.Report.String()), "\n", "\n  ")
		fmt.Fprintf(&b, "checked after %s:\n  %s\n", c.After, said)
	}
	row("violations", "%d", len(f.Violations))
	for _, v := range f.Violations {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
