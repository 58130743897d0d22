package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/devstack"
	"earshot/internal/testkit/production"
)

const (
	// betweenRestarts is how many events are written before the next restart. After that many, the
	// balancer and its connections have returned to normal.
	betweenRestarts = 200
	// rounds is how often each process is restarted. The short form has one round.
	rounds = 3
)

// rollingFigures has the figures of the part that restarts every process.
type rollingFigures struct {
	Restarts int `json:"restarts"`
	// Events counts the acknowledged events during the part, and Failed the failed requests.
	Events int `json:"events"`
	Failed int `json:"failed"`
	// Took is the time from the signal until the next process was ready.
	Took spread `json:"took"`
}

// chooseServer selects the Temporal server that runs in production.
func (s *stack) chooseServer(ctx context.Context) error {
	programs, err := production.BuildPrograms(ctx, repository, s.report)
	if err != nil {
		return err
	}
	s.temporalProgram = programs.Server
	s.startTemporal = func(ctx context.Context) (temporalServer, error) {
		return production.StartTemporal(ctx, production.TemporalOptions{
			Dir: filepath.Join(s.dir, "temporal"), Programs: programs, Database: s.postgres.URL("postgres"), Report: s.report,
		})
	}
	return nil
}

// role is the service's database role in production. It owns its database and nothing else.
const role, rolePassword = "earshot", "of-this-run-alone"

// ownDatabase creates the role as deploy/postgres/init.sh does.
func (s *stack) ownDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.postgres.URL("postgres"))
	if err != nil {
		return errors.Wrap(err, "connect")
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, statement := range []string{
		"CREATE ROLE " + role + " LOGIN PASSWORD '" + rolePassword + "'",
		"ALTER DATABASE " + database + " OWNER TO " + role,
		"REVOKE CONNECT ON DATABASE " + database + " FROM PUBLIC",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return errors.Wrap(err, "make the service's role")
		}
	}
	return nil
}

// asService returns the database's address with the service's role.
func (s *stack) asService(databaseURL string) string {
	u, err := url.Parse(databaseURL)
	if err != nil || !s.production {
		return databaseURL
	}
	u.User = url.UserPassword(role, rolePassword)
	return u.String()
}

// likeCompose turns a process's settings into the form of deploy/compose.yaml. Secrets are in
// files, and health and metrics have their own ports. A test compares the two.
func (s *stack) likeCompose(process string, env []string) (all []string, err error) {
	secrets := map[string]string{
		"DATABASE_URL": "", "EARSHOT_SECRET_KEYS": "", "EARSHOT_EMAIL_HASH_KEY": "",
		"EARSHOT_SMTP_URL": "", "EARSHOT_MAIL_BOUNCE_SECRET": "", "TEMPORAL_API_KEY": "", // An empty file means unset.
	}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		if _, secret := secrets[name]; secret {
			secrets[name] = value
		} else {
			all = append(all, pair)
		}
	}
	dir := filepath.Join(s.dir, "secrets", process)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, errors.Wrap(err, "make a directory for secrets")
	}
	for name, value := range secrets {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
			return nil, errors.Wrap(err, "write a secret")
		}
		all = append(all, name+"_FILE="+file)
	}
	for _, name := range []string{"EARSHOT_HEALTH_LISTEN", "EARSHOT_METRICS_LISTEN"} {
		port, err := devstack.FreePort()
		if err != nil {
			return nil, errors.Wrap(err, "choose a port")
		}
		all = append(all, name+"="+net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	return append(all, "TEMPORAL_NAMESPACE="+devstack.Namespace), nil
}

// quickstart plays a customer's first five minutes through the balancer.
func (r *run) quickstart(ctx context.Context, f *figures) error {
	t, err := r.newTenant(ctx, "quickstart", r.stack.url)
	if err != nil {
		return err
	}
	dir := filepath.Join(r.dir, "quickstart")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return errors.Wrap(err, "make a directory")
	}
	// The settings that `earshot up` would write. This stack has no web UI.
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

// rolling restarts each process in turn while events are written, and checks that no request
// failed.
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

// awaitEvents waits until n more events were acknowledged.
func (r *run) awaitEvents(ctx context.Context, n int) error {
	until := len(r.load.acknowledged()) + n
	return await(ctx, "further events", func() bool { return len(r.load.acknowledged()) >= until })
}

// productionRows prints the rows of a stack for production.
func (f *figures) productionRows(row func(name, format string, args ...any)) {
	if f.Quickstart > 0 {
		row("quickstart through the balancer", "%s", f.Quickstart.Round(time.Millisecond))
	}
	if r := f.Rolling; r.Restarts > 0 {
		row("rolling restart", "%d processes, each back after %s", r.Restarts, r.Took)
		row("meanwhile", "%d events acknowledged, %d requests failed", r.Events, r.Failed)
	}
}
