// Package apptest gives tests the running service, built from the same modules as the program.
// Tests create organizations and send requests over HTTP. Every answer of the API is checked
// against the contract.
//
// TestMain calls Main. A test calls Start, and creates an organization with App.Tenant. Without
// options all tests of a package share one service. Tests with the same worker or settings use a Shared.
package apptest

import (
	"context"
	"encoding/base64"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/fx"

	"earshot/api"
	"earshot/dispatch"
	"earshot/internal/app"
	"earshot/internal/backfill"
	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/postgres"
	"earshot/internal/send"
	"earshot/internal/telemetry"
	"earshot/internal/testkit"
)

// App is the running service.
type App struct {
	URL   string
	API   *api.API
	Store *postgres.DB
	api.UseCases
	Backfills *backfill.Service
	Changes   *change.Runner
	// Temporal is nil if the server didn't answer at the start.
	Temporal   client.Client
	Connection *dispatch.Connection
	Metrics    *telemetry.Metrics
	Config     config.Config
	// Pool is for the test's own statements, separate from the service's connections. A connection of
	// its own for each statement would take Postgres longer than the statement.
	Pool *pgxpool.Pool
	// began is the start of the test. The namespace contains closed workflows of earlier tests.
	began time.Time
}

// Options configure an App. Without options, Start returns the service that all tests of the
// package share.
type Options struct {
	// Worker runs deliveries. Without it their workflows start and wait.
	Worker bool
	// Alone requests a separate service for a test without other options. The test may stop a part,
	// lock tables, measure, or read all organizations.
	Alone bool
	// Environ has additional settings, KEY=value.
	Environ []string
	// Checks are additional checks of /readyz.
	Checks []api.Check
	// Traces receives the spans. Nil disables tracing.
	Traces *telemetry.Traces
	// Logs receives the log. Nil writes it to the test's output.
	Logs *slog.Logger
	// Temporal is the client's configuration. Nil leases a namespace.
	Temporal *client.Options
	// DatabaseURL names the database. If it is empty, Start creates one.
	DatabaseURL string
	// Into has pointers that receive other parts of the service, by type.
	Into []any
	// Decorate has functions that take a part of the service and return its replacement.
	Decorate []any
}

// PatientSender returns a sender that waits a minute for a receiver. It is for tests whose attempts
// must not time out, however busy the machine is. Pass it to Options.Decorate.
func PatientSender(c config.Config) *send.Sender {
	return send.New(send.Options{AllowCIDRs: c.WebhookAllowCIDRs, DenyCIDRs: c.WebhookDenyCIDRs, AllowHTTP: c.WebhookAllowHTTP, Timeout: time.Minute})
}

// shareable reports whether the options permit the service that all tests without options share.
func (o Options) shareable() bool {
	return !o.Worker && !o.Alone && o.Environ == nil && o.Checks == nil && o.Traces == nil && o.Logs == nil &&
		o.Temporal == nil && o.DatabaseURL == "" && o.Into == nil && o.Decorate == nil
}

// edges are the parts above the API that Main received.
var edges struct{ mounted, worker []fx.Option }

// Edge configures Main: the parts above the API, or the number of parallel tests.
type Edge func()

// WithParts adds parts to every service of the package, for example web.Module.
func WithParts(parts ...fx.Option) Edge {
	return func() { edges.mounted = append(edges.mounted, parts...) }
}

// WithWorker sets the worker of services with Options.Worker. Pass worker.Module.
func WithWorker(part fx.Option) Edge { return func() { edges.worker = []fx.Option{part} } }

// Waiting sets the number of tests that run in parallel, for packages whose tests mostly wait for
// timers. The default is the number of processors. The flag -parallel takes precedence.
func Waiting(tests int) Edge {
	return func() {
		flag.Parse()
		given := false
		flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
		if !given {
			_ = flag.Set("test.parallel", strconv.Itoa(tests)) // always valid
		}
	}
}

// Main runs the tests of a package, for its TestMain. Only the packages that test an edge import
// it, so an edit of one doesn't run the tests of all packages.
func Main(m *testing.M, with ...Edge) {
	for _, edge := range with {
		edge()
	}
	os.Exit(testkit.Run(runner{m}))
}

// runner stops the shared services after the tests.
type runner struct{ m *testing.M }

func (r runner) Run() int {
	code := r.m.Run()
	for _, s := range started.all {
		if err := s.stop(); err != nil {
			_, _ = os.Stderr.WriteString("stop a shared service: " + err.Error() + "\n")
			code = max(code, 1)
		}
		if code != 0 {
			_, _ = os.Stderr.WriteString("the log of a shared service:\n" + s.logs.String())
		}
	}
	return code
}

// Shared is a service that several tests of a package share, with the same options. Each test uses its own
// organization and sees no data of others. A service of its own costs a test half a second of processor time.
type Shared struct {
	// Worker and Environ are those of Options.
	Worker  bool
	Environ []string
	// Mails gives the service a directory for e-mails: Config.MailDir of the App.
	Mails bool
	// Database is appended to the database's URL, for example fixture.FastDeadlocks.
	Database string
	// Turns lets one test at a time use the service, until the test ends. It is for tests that look at the rows of
	// all organizations. The rows of earlier tests stay. A test must not call Start twice.
	Turns bool

	turn sync.Mutex
	once sync.Once
	app  *App
	err  error
	logs testkit.Logs
	// ends release what the service has, in reverse order.
	ends []func() error
}

// plain is the service of all tests without options.
var plain Shared

// started has the shared services that Main stops.
var started struct {
	sync.Mutex
	all []*Shared
}

// Start runs the service, built from the same modules as the program, and stops it when the test
// ends. Without options, all tests of the package share one service. Each test then uses its own
// organization and sees no data of others. By default receivers may be on loopback, and a failed
// attempt is repeated after 10 ms. Environ can change both.
func Start(t testing.TB, o Options) *App {
	t.Helper()
	if o.shareable() {
		return plain.Start(t)
	}
	var databaseURL string
	if o.DatabaseURL == "" {
		databaseURL = testkit.Database(t)
		o.DatabaseURL = databaseURL
	}
	if o.Temporal == nil {
		n := testkit.Namespace(t)
		o.Temporal = &n
	}
	if o.Logs == nil {
		o.Logs = testkit.Log(t)
	}
	a, stop, err := start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error("stop the service:", err)
		}
	})
	return a
}

// Start returns the shared service. The first test starts it, and Main stops it.
func (s *Shared) Start(t testing.TB) *App {
	t.Helper()
	if s.Turns {
		s.turn.Lock()
		t.Cleanup(s.turn.Unlock)
	}
	s.once.Do(func() {
		s.err = s.start(context.Background())
		started.Lock()
		defer started.Unlock()
		started.all = append(started.all, s)
	})
	require.NoError(t, s.err, "start the shared service")
	a := *s.app
	a.began = time.Now()
	return &a
}

func (s *Shared) start(ctx context.Context) error {
	url, err := testkit.NewDatabase(ctx)
	if err != nil {
		return err
	}
	namespace, giveBack, err := testkit.LeaseNamespace(ctx)
	if err != nil {
		return err
	}
	s.ends = append(s.ends, func() error { giveBack(); return nil })
	// A shared service runs more tests at the same time than others.
	environ := append([]string{"EARSHOT_DATABASE_MAX_CONNS=16"}, s.Environ...)
	if s.Mails {
		mails, err := os.MkdirTemp("", "earshot-mails-")
		if err != nil {
			return errors.Wrap(err, "make a directory for e-mails")
		}
		s.ends = append(s.ends, func() error { return os.RemoveAll(mails) })
		environ = append(environ, config.MailDir+"="+mails)
	}
	a, stop, err := start(ctx, Options{
		DatabaseURL: url + s.Database, Temporal: &namespace, Logs: s.logs.Warnings(), Worker: s.Worker, Environ: environ,
	})
	if err != nil {
		return err
	}
	s.app, s.ends = a, append(s.ends, stop)
	if s.Worker {
		return a.Swept(ctx)
	}
	return nil
}

func (s *Shared) stop() (err error) {
	for _, end := range slices.Backward(s.ends) {
		err = errors.Join(err, end())
	}
	return err
}

// Swept returns when the service, which has a worker, has finished the sweep at its start. That sweep could start
// a separate run for a delivery that has just been committed.
func (a *App) Swept(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, testkit.Wait)
	defer cancel()
	if a.Temporal == nil {
		return errors.New("a worker needs Temporal")
	}
	query := a.Since("WorkflowId = '" + dispatch.FirstSweep + "' AND ExecutionStatus = 'Completed'")
	for {
		answer, err := a.Temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		if err != nil {
			return errors.Wrap(err, "wait for the sweep at the start")
		}
		if answer.GetCount() > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("the sweep at the start has no end")
		case <-time.After(testkit.Tick):
		}
	}
}

// settings returns the settings of a test's service. The last value of a name counts.
func settings(o Options) (config.Config, error) {
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	return config.Load(append([]string{
		config.DatabaseURL + "=" + o.DatabaseURL,
		"EARSHOT_SECRET_KEYS=test:" + key,
		"EARSHOT_EMAIL_HASH_KEY=" + key,
		"EARSHOT_WEBHOOK_ALLOW_CIDRS=127.0.0.0/8,::1/128",
		"EARSHOT_WEBHOOK_ALLOW_HTTP=true",
		"EARSHOT_WEBHOOK_RETRY_DELAYS=10ms,10ms,10ms,10ms",
		// Many tests share one database server with a few hundred connections.
		"EARSHOT_DATABASE_MAX_CONNS=8",
		"EARSHOT_RATE_LIMIT=100000",
		"EARSHOT_DRAIN_TIMEOUT=5s",
	}, o.Environ...))
}

// start runs the service with a database, a namespace and a log.
func start(ctx context.Context, o Options) (a *App, stop func() error, err error) {
	c, err := settings(o)
	if err != nil {
		return nil, nil, err
	}
	a = &App{Config: c, began: time.Now()}
	parts := []fx.Option{
		fx.NopLogger,
		fx.Supply(c, *o.Temporal, o.Logs, o.Checks, api.Version("v0.0.0-test")),
		app.Module, api.Handler,
		fx.Invoke(func(u api.UseCases) { a.UseCases = u }),
		fx.Populate(&a.Store, &a.Backfills, &a.Changes, &a.Connection, &a.Metrics),
	}
	parts = append(parts, edges.mounted...)
	if o.Traces != nil {
		parts = append(parts, fx.Decorate(func() *telemetry.Traces { return o.Traces }))
	}
	if o.Worker {
		if edges.worker == nil {
			return nil, nil, errors.New("the package's TestMain has no apptest.WithWorker(worker.Module)")
		}
		parts = append(parts, edges.worker...)
	}
	for _, change := range o.Decorate {
		parts = append(parts, fx.Decorate(change))
	}
	if o.Into != nil {
		parts = append(parts, fx.Populate(o.Into...))
	}
	if a.Pool, err = pgxpool.New(ctx, c.DatabaseURL); err != nil {
		return nil, nil, errors.Wrap(err, "reach the database")
	}
	service := fx.New(append(parts, dispatch.Drain, fx.Populate(&a.API))...)
	if err := service.Start(ctx); err != nil {
		return nil, nil, errors.Wrap(err, "start the service")
	}
	a.connect(ctx)
	closeServer, err := a.serve(ctx, api.StandardLimits(), o.Logs)
	if err != nil {
		return nil, nil, err
	}
	return a, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Wait)
		defer cancel()
		a.Pool.Close()
		return errors.Join(closeServer(ctx), service.Stop(ctx))
	}, nil
}

// Behind returns the service behind another HTTP server, which has the limits and ends with the test.
func (a *App) Behind(t testing.TB, limits api.Limits) *App {
	t.Helper()
	same := *a
	stop, err := same.serve(t.Context(), limits, testkit.Log(t))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Wait)
		defer cancel()
		if err := stop(ctx); err != nil {
			t.Error("stop the server:", err)
		}
	})
	return &same
}

// serve starts a server of the API on a free port.
func (a *App) serve(ctx context.Context, limits api.Limits, log *slog.Logger) (stop func(context.Context) error, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Wrap(err, "listen")
	}
	a.URL = "http://" + listener.Addr().String()
	server, done := api.NewServer(a.API, limits, log), make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	return func(ctx context.Context) error {
		err := server.Shutdown(ctx)
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// connect gives the test the service's Temporal client. Without a Temporal server the test has
// none.
func (a *App) connect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if c, err := a.Connection.Client(ctx); err == nil {
		a.Temporal = c
	}
}

// Runs waits until the visibility query matches n workflows that started after the test began, and returns
// them. In a shared service the query names the organization, webhook, delivery or workflow.
func (a *App) Runs(t *testing.T, query string, n int) []*workflow.WorkflowExecutionInfo {
	t.Helper()
	query = a.Since(query)
	var found []*workflow.WorkflowExecutionInfo
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		answer, err := a.Temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		require.NoError(c, err)
		found = answer.GetExecutions()
		require.Equal(c, n, len(found)) // Len would print them all
	}, testkit.Wait, testkit.Tick) // the lists of all tests share one connection to SQLite
	return found
}

// Since restricts a visibility query to workflows that started after the test began.
func (a *App) Since(query string) string {
	since := "StartTime >= '" + a.began.UTC().Format(time.RFC3339Nano) + "'"
	if query == "" {
		return since
	}
	return "(" + query + ") AND " + since
}
