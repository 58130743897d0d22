package testkit

import (
	"context"
	"encoding/base64"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/fx"

	"earshot/activities"
	"earshot/api"
	"earshot/dispatch"
	"earshot/internal/access"
	"earshot/internal/backfill"
	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/contacts"
	"earshot/internal/feedback"
	"earshot/internal/interactions"
	"earshot/internal/store"
	"earshot/internal/subjects"
	"earshot/internal/subscribers"
	"earshot/internal/telemetry"
	"earshot/internal/webhooks"
	"earshot/internal/widget"
	"earshot/mcp"
	"earshot/web"
	"earshot/worker"
)

// App is the service, running for one test with a database and a namespace of
// its own.
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
	// Subscribers are those who are told by e-mail what becomes of what they wanted.
	Subscribers *subscribers.Service
	// Interactions are those of end-users on public boards.
	Interactions *interactions.Service
	Changes      *change.Runner
	// Temporal is nil when it didn't answer at the start.
	Temporal   client.Client
	Connection *dispatch.Connection
	// Deliveries are the activities of a worker; nil without one.
	Deliveries *activities.Deliveries
	Metrics    *telemetry.Metrics
	Config     config.Config

	t testing.TB
}

// Options of an App.
type Options struct {
	// Worker runs deliveries. Without it their workflows start and wait.
	Worker bool
	// SchedulesEvery is how often the worker looks after its schedules; 0 is as in
	// production.
	SchedulesEvery time.Duration
	// Environ are further settings, KEY=value.
	Environ []string
	// Checks of /readyz.
	Checks []api.Check
	// Traces get the spans; nil is none.
	Traces *telemetry.Traces
	// Logs gets the log; nil puts it into the test's output.
	Logs *slog.Logger
	// Temporal is where to start workflows; nil makes a namespace.
	Temporal *client.Options
	// DatabaseURL names the database; "" makes one.
	DatabaseURL string
	// Limits of the HTTP server; nil is as in production.
	Limits *api.Limits
}

// Start runs the service, wired by the same modules as the program, and stops
// it when the test ends. Receivers may be on loopback, and a failed attempt is
// made again after 10 ms unless Environ says otherwise.
func Start(t testing.TB, o Options) *App {
	t.Helper()
	if o.DatabaseURL == "" {
		o.DatabaseURL = Database(t)
	}
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	c, err := config.Load(append([]string{
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
	require.NoError(t, err)
	if o.Temporal == nil {
		n := Namespace(t)
		o.Temporal = &n
	}
	if o.Logs == nil {
		o.Logs = Log(t)
	}
	a := &App{Config: c, t: t}
	parts := []fx.Option{
		fx.NopLogger,
		fx.Supply(c, *o.Temporal, o.Logs, o.Checks),
		telemetry.Module, store.Module, change.Module, access.Module, contacts.Module, webhooks.Module, feedback.Module, interactions.Module, subjects.Module, backfill.Module, subscribers.Module, widget.Module, dispatch.Module, api.Handler, mcp.Module, web.Module,
		fx.Populate(&a.Store, &a.Access, &a.Contacts, &a.Feedback, &a.Webhooks, &a.Interactions, &a.Subjects, &a.Backfills, &a.Subscribers, &a.Widget, &a.Changes, &a.Connection, &a.Metrics),
	}
	if o.Traces != nil {
		parts = append(parts, fx.Decorate(func() *telemetry.Traces { return o.Traces }))
	}
	if o.Worker {
		parts = append(parts, worker.Module, fx.Populate(&a.Deliveries), fx.Decorate(func(w worker.Options) worker.Options {
			w.SchedulesEvery = o.SchedulesEvery
			return w
		}))
	}
	app := fx.New(append(parts, dispatch.Drain, fx.Populate(&a.API))...)
	require.NoError(t, app.Start(t.Context()))
	a.connect()
	stop := a.serve(a.API, o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Wait)
		defer cancel()
		stop(ctx)
		if err := app.Stop(ctx); err != nil {
			t.Log("stop the service:", err)
		}
	})
	return a
}

// serve opens the API on a free port.
func (a *App) serve(h http.Handler, o Options) (stop func(context.Context)) {
	limits := api.StandardLimits()
	if o.Limits != nil {
		limits = *o.Limits
	}
	listener, err := new(net.ListenConfig).Listen(a.t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(a.t, err)
	a.URL = "http://" + listener.Addr().String()
	server, done := api.NewServer(h, limits, o.Logs), make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	return func(ctx context.Context) {
		if err := server.Shutdown(ctx); err != nil {
			a.t.Log("stop the server:", err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			a.t.Error("the server ended:", err)
		}
	}
}

// connect gives the test the service's own client. A test in which Temporal is
// away has none.
func (a *App) connect() {
	ctx, cancel := context.WithTimeout(a.t.Context(), 10*time.Second)
	defer cancel()
	if c, err := a.Connection.Client(ctx); err == nil {
		a.Temporal = c
	}
}

// Runs waits until the visibility query finds so many and returns them.
func (a *App) Runs(t *testing.T, query string, n int) []*workflow.WorkflowExecutionInfo {
	t.Helper()
	var found []*workflow.WorkflowExecutionInfo
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		answer, err := a.Temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		require.NoError(c, err)
		found = answer.GetExecutions()
		require.Equal(c, n, len(found)) // and not Len, which prints them all
	}, Wait, 50*time.Millisecond)
	return found
}
