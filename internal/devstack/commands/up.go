// Package commands runs the development stack of one directory: the private Postgres, Temporal's dev
// server, and the service with both. `earshot up`, `earshot down` and `earshot reset` are its users.
package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/config"
	"earshot/internal/devstack"
	"earshot/internal/devstack/demo"
	"earshot/internal/devstack/process"
	"earshot/internal/devstack/statedir"
)

// The files of a stack in its directory, beside those that clients read.

func secretsEnv(d statedir.Dir) string  { return d.File("secrets.env") }
func serviceLog(d statedir.Dir) string  { return d.File("earshot.log") }
func upLog(d statedir.Dir) string       { return d.File("up.log") } // output of a detached `up`
func postgresDir(d statedir.Dir) string { return d.File("postgres") }
func temporalDir(d statedir.Dir) string { return d.File("temporal") }
func mailDir(d statedir.Dir) string     { return d.File("mail") } // e-mails that weren't sent

// Options select a stack and its parts.
type Options struct {
	Dir statedir.Dir
	// Environ is the caller's environment. Every setting of the service passes through from it.
	Environ config.Environ
	// Serve runs the API and the worker until ctx ends. The structured log goes to logs.
	Serve func(ctx context.Context, environ []string, logs io.Writer) error
	// Ready asks /readyz of the API at the base URL. Nil is a 200.
	Ready func(ctx context.Context, baseURL string) error
	// Out receives one line for each step.
	Out io.Writer
	// Demo fills an organization with a realistic product, and receives its webhook.
	Demo bool
	// Detached tells the process that UpDetached started.
	Detached bool
}

// up is one run of the stack.
type up struct {
	Options
	*progress

	root     string // of the repository
	lock     *upLock
	ports    ports
	secrets  []statedir.Setting
	postgres *devstack.Postgres
	temporal *devstack.Temporal
	keys     keys
	service  *service
	demo     string // address of a public board
	stopDemo func()
}

// Up starts everything, waits until ctx or a part ends, and stops everything. Its error names the
// failed step or part and suggests a fix.
func Up(ctx context.Context, o Options) error {
	began := time.Now()
	u := &up{Options: o, progress: newProgress(o.Out)}
	if err := u.claim(); err != nil {
		return err
	}
	defer u.lock.release()
	if err := u.decide(); err != nil {
		return err
	}
	err := u.start(ctx)
	if err == nil {
		u.banner(time.Since(began))
		err = u.lock.announce(u.baseURL())
	}
	if err == nil {
		err = u.watch(ctx)
	}
	_ = u.lock.announce("") // other commands see the change now; the lock is held until the end
	if stopped := u.stop(); err == nil {
		err = stopped
	}
	return err
}

// step is one step of the start.
type step struct {
	name string
	run  func(ctx context.Context) (outcome string, err error)
	// log is the log file with the cause of a failure. It is empty if the error quotes the cause.
	log string
	// try is a command or an advice after a failure. It may be empty.
	try string
}

func (u *up) steps() []step {
	log := "look into " + statedir.ShortPath(temporalDir(u.Dir)) + "/temporal.log, or begin anew: " + u.Dir.Command("reset")
	// The reset command comes last, because most failures have nothing to do with the data.
	again := u.Dir.Command("up") + ", once that is mended; " + u.Dir.Command("reset") + " only if the data itself is broken, which removes it"
	steps := []step{
		{name: "Postgres", run: u.startPostgres, try: again},
		{name: "Temporal", run: u.startTemporal, try: again},
		{name: "Search attributes", run: u.registerAttributes, try: log},
		{name: "Database", run: u.migrate, try: "look at the migrations in ent/migrations, or begin anew: " + u.Dir.Command("reset")},
		{name: "API keys", run: u.provideKeys},
		{name: "API and worker", run: u.startService, log: serviceLog(u.Dir)},
	}
	if u.Demo {
		steps = append(steps, step{name: "Demo", run: u.startDemo, try: "begin anew: " + u.Dir.Command("reset")})
	}
	return steps
}

func (u *up) startDemo(ctx context.Context) (outcome string, err error) {
	u.demo, u.stopDemo, err = demo.Start(ctx, u.baseURL(), u.keys.write, u.report)
	return u.demo, err
}

var errInterrupted = errors.New("interrupted")

// claim makes and locks the directory.
func (u *up) claim() (err error) {
	if u.root, err = devstack.RepositoryRoot(); err != nil {
		return err
	}
	if err := u.Dir.Make(); err != nil {
		return err
	}
	u.lock, err = takeLock(u.Dir)
	return err
}

// decide chooses the ports, loads the secrets and checks the caller's settings, before anything
// starts.
func (u *up) decide() (err error) {
	if u.ports, err = choosePorts(u.Environ, u.temporalDev()); err != nil {
		return err
	}
	if u.secrets, err = loadSecrets(u.Dir); err != nil {
		return err
	}
	// The addresses are placeholders until the servers run.
	_, err = config.Load(append(u.settings(), config.DatabaseURL+"=postgres://later", config.MetricsListen+"="+u.metricsAddress()))
	return err
}

func (u *up) temporalDev() string { return filepath.Join(u.root, "temporal-dev.yaml") }

func (u *up) start(ctx context.Context) error {
	u.say("Starting the development stack in %s", statedir.ShortPath(string(u.Dir)))
	for _, s := range u.steps() {
		err := u.step(s.name, func() (string, error) { return s.run(ctx) })
		if ctx.Err() != nil {
			return errInterrupted
		}
		if err != nil {
			return s.explain(err)
		}
	}
	return nil
}

// explain turns a step's error into a message with the cause and advice.
func (s step) explain(err error) error {
	text := fmt.Sprintf("%s: %v", s.name, err)
	if s.log != "" {
		// A server that is killed, or a service with wrong settings, may end before it writes a
		// log.
		tail := process.Tail(s.log)
		if tail == "" {
			tail = "(nothing is in it)"
		}
		text += fmt.Sprintf("\nend of %s:\n%s", statedir.ShortPath(s.log), tail)
	}
	if s.try != "" {
		text += "\nto try: " + s.try
	}
	return errors.New(text)
}

// watch waits until ctx or a part ends. A part that ends unexpectedly is an error.
func (u *up) watch(ctx context.Context) error {
	select {
	case <-ctx.Done():
		if u.Detached {
			u.say("Stopping")
		} else {
			u.say("Stopping; another Ctrl-C ends everything at once")
		}
		return nil
	case <-u.postgres.Done():
		return u.died("Postgres", u.postgres.Log(), nil)
	case <-u.temporal.Done():
		return u.died("Temporal", u.temporal.Log(), nil)
	case <-u.service.done:
		return u.died("API and worker", serviceLog(u.Dir), u.service.err)
	}
}

func (u *up) died(name, log string, err error) error {
	u.say("%s ended by itself; stopping the rest", name)
	return step{name: name, log: log, try: u.Dir.Command("up")}.explain(cmp.Or(err, errors.New("ended by itself")))
}

// stop stops the parts in the reverse order of their dependencies.
func (u *up) stop() error {
	var failed []error
	end := func(name string, done <-chan struct{}, stop func() error) {
		select {
		case <-done: // ended on its own, which was reported
			return
		default:
		}
		err := u.step(name, func() (string, error) { return "stopped", stop() })
		if err != nil {
			failed = append(failed, errors.Wrapf(err, "stop %s", name))
		}
	}
	if u.stopDemo != nil {
		u.stopDemo()
	}
	if s := u.service; s != nil {
		end("API and worker", s.done, s.stop)
	}
	// The servers have their own stop timeouts.
	if t := u.temporal; t != nil {
		end("Temporal", t.Done(), func() error { return t.Stop(context.Background()) })
	}
	if p := u.postgres; p != nil {
		end("Postgres", p.Done(), func() error { return p.Stop(context.Background()) })
	}
	return errors.Join(failed...)
}
