// Package apptest gives tests the running service, wired by the same modules as the
// program, and organizations that act on it over HTTP. Every answer of the API is held
// against the contract.
//
// TestMain calls Main. A test calls Start, and makes an organization with App.Tenant.
// Without options all tests of a package share one service.
package apptest

import (
	"context"
	"encoding/base64"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
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
	"earshot/internal/access"
	"earshot/internal/backfill"
	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/contacts"
	"earshot/internal/feedback"
	"earshot/internal/interactions"
	"earshot/internal/send"
	"earshot/internal/store"
	"earshot/internal/subjects"
	"earshot/internal/subscribers"
	"earshot/internal/telemetry"
	"earshot/internal/testkit"
	"earshot/internal/webhooks"
	"earshot/internal/widget"
)

// App is the running service.
type App struct {
	URL       string
	API       *api.API
	Store     *store.Store
	Access    *access.Service
	Contacts  *contacts.Service
	Feedback  *feedback.Service
	Webhooks  *webhooks.Service
	Subjects  *subjects.Service
	Backfills *backfill.Service
	Widget    *widget.Service
	// Subscribers e-mail end-users about their posts.
	Subscribers *subscribers.Service
	// Interactions are those of end-users on public boards.
	Interactions *interactions.Service
	Changes      *change.Runner
	// Temporal is nil when it didn't answer at the start.
	Temporal   client.Client
	Connection *dispatch.Connection
	Metrics    *telemetry.Metrics
	Config     config.Config
	// pool is for what the test itself asks of the database, beside the service's connections.
	pool *pgxpool.Pool
	// began is the start of the test's use: the namespace has closed runs of tests before.
	began time.Time
}

// Options of an App. Without any, Start returns the service that all tests of the package
// share.
type Options struct {
	// Worker runs deliveries. Without it their workflows start and wait.
	Worker bool
	// Alone is a service of the test's own, though it has no other option: the test stops a part,
	// locks tables, measures, or looks at all organizations.
	Alone bool
	// Environ are further settings, KEY=value.
	Environ []string
	// Checks of /readyz.
	Checks []api.Check
	// Traces get the spans; nil is none.
	Traces *telemetry.Traces
	// Logs gets the log; nil puts it into the test's output.
	Logs *slog.Logger
	// Temporal is where to start workflows; nil leases a namespace.
	Temporal *client.Options
	// DatabaseURL names the database; "" makes one.
	DatabaseURL string
	// Limits of the HTTP server; nil is as in production.
	Limits *api.Limits
	// Into are pointers that get further parts of the service, by their type.
	Into []any
	// Decorate are functions that change a part of the service, which they take and return.
	Decorate []any
}

// PatientSender replaces the sender of attempts by one that gives a receiver a minute, for tests in
// which an attempt must not time out, however busy the machine is. It is for Options.Decorate.
func PatientSender(c config.Config) *send.Sender {
	return send.New(send.Options{AllowCIDRs: c.WebhookAllowCIDRs, AllowHTTP: c.WebhookAllowHTTP, Timeout: time.Minute})
}

// shareable says whether the service that all tests of the package share will do.
func (o Options) shareable() bool {
	return !o.Worker && !o.Alone && o.Environ == nil && o.Checks == nil && o.Traces == nil && o.Logs == nil &&
		o.Temporal == nil && o.DatabaseURL == "" && o.Limits == nil && o.Into == nil && o.Decorate == nil
}

// edges are the parts above the API that Main was given.
var edges struct{ mounted, worker []fx.Option }

// Edge says how Main runs the tests of a package: which parts the service has above the API.
type Edge func()

// WithParts has every service of the package have these parts, for example web.Module.
func WithParts(parts ...fx.Option) Edge {
	return func() { edges.mounted = append(edges.mounted, parts...) }
}

// WithWorker has a service with Options.Worker have this worker, which is worker.Module.
func WithWorker(part fx.Option) Edge { return func() { edges.worker = []fx.Option{part} } }

// Waiting has so many tests of the package run at once, for tests that mostly wait for timers. By
// default as many run as there are processors. The flag -parallel wins.
func Waiting(tests int) Edge {
	return func() {
		flag.Parse()
		given := false
		flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
		if !given {
			_ = flag.Set("test.parallel", strconv.Itoa(tests)) // a number that is one
		}
	}
}

// Main runs a package's tests, for its TestMain. The edges are parts of the service that
// only some packages test, so that an edit of one doesn't run the tests of all.
func Main(m *testing.M, with ...Edge) {
	for _, edge := range with {
		edge()
	}
	os.Exit(testkit.Run(runner{m}))
}

// runner ends the shared service after the tests.
type runner struct{ m *testing.M }

func (r runner) Run() int {
	code := r.m.Run()
	if shared.stop != nil {
		shared.stop()
	}
	if code != 0 {
		_, _ = os.Stderr.WriteString("the log of the shared service:\n" + shared.logs.String())
	}
	return code
}

// shared is the service of all tests that have no options.
var shared struct {
	once sync.Once
	app  *App
	err  error
	stop func()
	logs testkit.Logs
}

// Start runs the service, wired by the same modules as the program, and stops
// it when the test ends. Without options it is one service for all tests of the package: a
// test then has an organization of its own, and sees nothing of the others'. Receivers may be
// on loopback, and a failed attempt is made again after 10 ms unless Environ says otherwise.
func Start(t testing.TB, o Options) *App {
	t.Helper()
	if o.shareable() {
		return share(t)
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

// share returns the shared service, which the first test starts.
func share(t testing.TB) *App {
	t.Helper()
	shared.once.Do(func() {
		ctx := context.Background()
		url, err := testkit.NewDatabase(ctx)
		if err != nil {
			shared.err = err
			return
		}
		namespace, giveBack, err := testkit.LeaseNamespace(ctx)
		if err != nil {
			shared.err = err
			return
		}
		a, stop, err := start(ctx, Options{
			DatabaseURL: url, Temporal: &namespace, Logs: shared.logs.Warnings(),
			// More tests at once than a service of one test has.
			Environ: []string{"EARSHOT_DATABASE_MAX_CONNS=16"},
		})
		if err != nil {
			shared.err = err
			return
		}
		shared.app = a
		shared.stop = func() {
			if err := stop(); err != nil {
				_, _ = os.Stderr.WriteString("stop the shared service: " + err.Error() + "\n")
			}
			giveBack()
		}
	})
	require.NoError(t, shared.err, "start the shared service")
	a := *shared.app
	a.began = time.Now()
	return &a
}

// settings are those of a service for tests; the last one of a name counts.
func settings(o Options) (config.Config, error) {
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	return config.Load(append([]string{
		config.DatabaseURL + "=" + o.DatabaseURL,
		"EARSHOT_SECRET_KEYS=test:" + key,
		"EARSHOT_EMAIL_HASH_KEY=" + key,
		"EARSHOT_WEBHOOK_ALLOW_CIDRS=127.0.0.0/8,::1/128",
		"EARSHOT_WEBHOOK_ALLOW_HTTP=true",
		"EARSHOT_WEBHOOK_RETRY_DELAYS=10ms,10ms,10ms,10ms",
		// Many tests run at once on one server with a few hundred connections.
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
		telemetry.Module, store.Module, change.Module, access.Module, contacts.Module, webhooks.Module, feedback.Module,
		interactions.Module, subjects.Module, backfill.Module, subscribers.Module, widget.Module, dispatch.Module, api.Handler,
		fx.Populate(&a.Store, &a.Access, &a.Contacts, &a.Feedback, &a.Webhooks, &a.Interactions, &a.Subjects, &a.Backfills,
			&a.Subscribers, &a.Widget, &a.Changes, &a.Connection, &a.Metrics),
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
	if a.pool, err = pgxpool.New(ctx, c.DatabaseURL); err != nil {
		return nil, nil, errors.Wrap(err, "reach the database")
	}
	service := fx.New(append(parts, dispatch.Drain, fx.Populate(&a.API))...)
	if err := service.Start(ctx); err != nil {
		return nil, nil, errors.Wrap(err, "start the service")
	}
	a.connect(ctx)
	closeServer, err := a.serve(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	return a, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Wait)
		defer cancel()
		a.pool.Close()
		return errors.Join(closeServer(ctx), service.Stop(ctx))
	}, nil
}

// serve opens the API on a free port.
func (a *App) serve(ctx context.Context, o Options) (stop func(context.Context) error, err error) {
	limits := api.StandardLimits()
	if o.Limits != nil {
		limits = *o.Limits
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Wrap(err, "listen")
	}
	a.URL = "http://" + listener.Addr().String()
	server, done := api.NewServer(a.API, limits, o.Logs), make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	return func(ctx context.Context) error {
		err := server.Shutdown(ctx)
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// connect gives the test the service's own client. A test in which Temporal is
// away has none.
func (a *App) connect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if c, err := a.Connection.Client(ctx); err == nil {
		a.Temporal = c
	}
}

// Runs waits until the visibility query finds so many of the test's runs and returns them.
func (a *App) Runs(t *testing.T, query string, n int) []*workflow.WorkflowExecutionInfo {
	t.Helper()
	query = a.Since(query)
	var found []*workflow.WorkflowExecutionInfo
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		answer, err := a.Temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		require.NoError(c, err)
		found = answer.GetExecutions()
		require.Equal(c, n, len(found)) // and not Len, which prints them all
	}, testkit.Wait, 50*time.Millisecond)
	return found
}

// Since adds to a visibility query that runs have started since the test began.
func (a *App) Since(query string) string {
	since := "StartTime >= '" + a.began.UTC().Format(time.RFC3339Nano) + "'"
	if query == "" {
		return since
	}
	return "(" + query + ") AND " + since
}
