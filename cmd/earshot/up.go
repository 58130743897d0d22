package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"

	"earshot/internal/config"
	"earshot/internal/devstack"
)

func newUpCommand() *cobra.Command {
	var (
		dir                      string
		detach, detached, asJSON bool
		install, withDemo        bool
	)
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run everything on this machine: Postgres, Temporal, the API and the worker",
		Long: "Starts a private Postgres and a Temporal dev server with its web UI, prepares both, and runs the API\n" +
			"and the worker until Ctrl-C. The data stays; `earshot reset` removes it.\n\n" +
			"Every setting of the service passes through from the environment. The ports are chosen with\n" +
			"EARSHOT_PORT, EARSHOT_POSTGRES_PORT, EARSHOT_METRICS_PORT, EARSHOT_TEMPORAL_PORT and\n" +
			"EARSHOT_TEMPORAL_UI_PORT; 0 is any free one. Where everything is, and API keys,\n" +
			"stand in dev.env in the state directory, for shells to source.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			environ := lookup(os.Environ())
			d, err := findStateDir(dir, environ)
			if err != nil {
				return err
			}
			if install {
				// A detached stack starts in another process, which reads this variable.
				if err := os.Setenv(devstack.InstallVariable, "1"); err != nil {
					return errors.Wrap(err, "permit an installation")
				}
			}
			switch {
			case detach:
				return upDetached(cmd.Context(), d, cmd.OutOrStdout(), cmd.ErrOrStderr(), asJSON, withDemo)
			case asJSON:
				return errors.New("--json needs --detach: a stack in the foreground has no result")
			}
			u := &up{dir: d, environ: environ, progress: newProgress(cmd.OutOrStdout()), out: cmd.OutOrStdout(), detached: detached, withDemo: withDemo}
			return u.run(cmd.Context())
		},
	}
	addDirFlag(cmd, &dir)
	f := cmd.Flags()
	f.BoolVarP(&detach, "detach", "d", false, "return when everything answers, and leave it running")
	f.BoolVar(&asJSON, "json", false, "with --detach: print where everything is as JSON, the rest on stderr")
	f.BoolVar(&install, "install", false, "install Postgres with apt-get without asking, where this is root on Debian or Ubuntu and there is none")
	f.BoolVar(&withDemo, demoFlag, false, "fill an organization with a realistic product, and receive its webhook")
	f.BoolVar(&detached, detachedFlag, false, "what --detach starts")
	_ = f.MarkHidden(detachedFlag)
	return cmd
}

// up is one run of the stack.
type up struct {
	*progress

	dir      stateDir
	root     string // of the repository
	environ  lookup
	out      io.Writer
	detached bool
	withDemo bool

	lock     *upLock
	ports    ports
	secrets  []setting
	postgres *devstack.Postgres
	temporal *devstack.Temporal
	keys     keys
	service  *service
	demo     string // address of a public board
	stopDemo func()
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
	log := "look into " + shortPath(u.dir.temporal()) + "/temporal.log, or begin anew: " + u.dir.command("reset")
	// The reset command comes last, because most failures have nothing to do with the data.
	again := u.dir.command("up") + ", once that is mended; " + u.dir.command("reset") + " only if the data itself is broken, which removes it"
	steps := []step{
		{name: "Postgres", run: u.startPostgres, try: again},
		{name: "Temporal", run: u.startTemporal, try: again},
		{name: "Search attributes", run: u.registerAttributes, try: log},
		{name: "Database", run: u.migrate, try: "look at the migrations in ent/migrations, or begin anew: " + u.dir.command("reset")},
		{name: "API keys", run: u.provideKeys},
		{name: "API and worker", run: u.startService, log: u.dir.serviceLog()},
	}
	if u.withDemo {
		steps = append(steps, step{name: "Demo", run: u.startDemo, try: "begin anew: " + u.dir.command("reset")})
	}
	return steps
}

func (u *up) startDemo(ctx context.Context) (outcome string, err error) {
	u.demo, u.stopDemo, err = startDemo(ctx, u.baseURL(), u.keys.write, u.report)
	return u.demo, err
}

var errInterrupted = errors.New("interrupted")

// run starts everything, waits until ctx or a part ends, and stops everything. Its error names the
// failed step or part and suggests a fix.
func (u *up) run(ctx context.Context) error {
	began := time.Now()
	if err := u.claim(); err != nil {
		return err
	}
	defer u.lock.release()
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

// claim locks the directory and checks for errors before anything starts.
func (u *up) claim() (err error) {
	if u.root, err = devstack.RepositoryRoot(); err != nil {
		return err
	}
	// Other users may pass through the directory but not list it, because Postgres may run as
	// another user.
	if err := os.MkdirAll(string(u.dir), 0o711); err != nil {
		return errors.Wrap(err, "make the state directory")
	}
	lock, holder, err := takeLock(u.dir)
	if err != nil {
		return err
	}
	if holder != nil {
		return errors.Errorf("this stack runs already (%s); `%s` stops it", holder, u.dir.command("down"))
	}
	u.lock = lock
	if err := u.decide(); err != nil {
		lock.release()
		return err
	}
	return nil
}

// decide chooses the ports, loads the secrets and checks the caller's settings.
func (u *up) decide() (err error) {
	if u.ports, err = choosePorts(u.environ, u.temporalDev()); err != nil {
		return err
	}
	if u.secrets, err = loadSecrets(u.dir); err != nil {
		return err
	}
	// The addresses are placeholders until the servers run.
	_, err = config.Load(append(u.settings(), config.DatabaseURL+"=postgres://later", metricsVariable+"="+u.metricsAddress()))
	return err
}

func (u *up) temporalDev() string { return filepath.Join(u.root, "temporal-dev.yaml") }

func (u *up) start(ctx context.Context) error {
	u.say("Starting the development stack in %s", shortPath(string(u.dir)))
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
		tail := devstack.Tail(s.log, tailLines)
		if tail == "" {
			tail = "(nothing is in it)"
		}
		text += fmt.Sprintf("\nend of %s:\n%s", shortPath(s.log), tail)
	}
	if s.try != "" {
		text += "\nto try: " + s.try
	}
	return errors.New(text)
}

// tailLines is enough to show the cause and some context.
const tailLines = 15

// watch waits until ctx or a part ends. A part that ends unexpectedly is an error.
func (u *up) watch(ctx context.Context) error {
	select {
	case <-ctx.Done():
		if u.detached {
			u.say("Stopping")
		} else {
			u.say("Stopping; another Ctrl-C ends everything at once")
		}
		return nil
	case <-u.postgres.Done():
		return u.died("Postgres", u.postgres.Log())
	case <-u.temporal.Done():
		return u.died("Temporal", u.temporal.Log())
	case <-u.service.done:
		err := errors.New("ended by itself")
		if u.service.err != nil {
			err = u.service.err
		}
		return step{name: "API and worker", log: u.dir.serviceLog(), try: u.dir.command("up")}.explain(err)
	}
}

func (u *up) died(name, log string) error {
	u.say("%s ended by itself; stopping the rest", name)
	return step{name: name, log: log, try: u.dir.command("up")}.explain(errors.New("ended by itself"))
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
