// Package api is the HTTP edge: it decodes, authorizes, calls a use case and
// encodes. It holds no SQL, no transaction and no Temporal type.
package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"

	"earshot/api/contract"
	"earshot/api/gen"
	"earshot/internal/keyring"
	"earshot/internal/memory"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/ratelimit"
	"earshot/internal/telemetry"
)

// Options are the settings of the HTTP interface.
type Options struct {
	// RateLimits are the budgets of keys.
	RateLimits *ratelimit.Keys
	// Proxies are the trusted proxies. They report the address of the client.
	Proxies []netip.Prefix
	// BounceSecret enables the route by which the operator reports bounced e-mails. Without it,
	// there is no such route.
	BounceSecret string
	// Checks decide the answer of /readyz.
	Checks []Check
	// Version is shown on the page at /.
	Version Version
	// Work is the time limit for an operation once its request has arrived. The default is a
	// minute.
	Work time.Duration
	// Meter counts requests. The zero value counts nothing.
	Meter telemetry.Meter
	// Traces get the spans of requests. Nil disables tracing.
	Traces *telemetry.Traces
	Log    *slog.Logger
}

// standardWork equals the time limit of a statement (postgres.Options.Serving).
const standardWork = time.Minute

type server struct {
	answers *page.Memory
	UseCases
	contract *contract.Contract
	keys     *keyring.Keyring
	limits   *ratelimit.Keys
	// refusedKeys counts invalid keys by the client's network.
	refusedKeys *ratelimit.Buckets[netip.Prefix]
	proxies     []netip.Prefix
	work        time.Duration
	metrics     metrics
	traces      *telemetry.Traces
	bodies      *memory.Shared[publicid.Organization]
	decoders    chan struct{}
	// leaving is closed when the process begins to stop.
	leaving <-chan struct{}
	log     *slog.Logger
}

// API is the handler for everything that the service serves over HTTP.
type API struct {
	server    *server
	readiness *readiness
	engine    *gin.Engine
}

// ServeHTTP serves a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.engine.ServeHTTP(w, r) }

// New makes the API. Other surfaces must be mounted before it serves.
func New(u UseCases, o Options) (*API, error) {
	c, err := loadContract()
	if err != nil {
		return nil, err
	}
	s := &server{
		UseCases: u, answers: page.NewMemory(), contract: c, log: o.Log, limits: o.RateLimits,
		refusedKeys: ratelimit.NewBuckets[netip.Prefix](wrongKeys), proxies: o.Proxies, work: cmp.Or(o.Work, standardWork), metrics: newMetrics(o.Meter),
		traces: o.Traces,
		bodies: memory.NewShared[publicid.Organization](memory.Bodies), decoders: make(chan struct{}, memory.Decoders),
		keys: keyring.New(u.Access.Authenticate),
	}
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	// Handlers get the Gin context as their context. The fallback lets them find the values that
	// middleware put into the request's context.
	r.ContextWithFallback = true
	r.HandleMethodNotAllowed = true
	r.RedirectTrailingSlash = false
	// Gin reads only the first of several headers. The function clientaddr.Of reads all of them.
	_ = r.SetTrustedProxies(nil)
	ready := newReadiness(o.Checks, o.Log)
	s.leaving = ready.leaving
	ready.show(o.Meter)
	r.Use(closeAfterChunks, ready.endConnections, secure, withRequestID, s.trace, s.measure, s.logAccess, gin.CustomRecoveryWithWriter(nil, s.recovered))
	r.NoRoute(func(c *gin.Context) { s.refuse(c, problem.New(problem.NotFound, "There is no such route.")) })
	r.NoMethod(func(c *gin.Context) {
		s.refuse(c, problem.New(problem.MethodNotAllowed, "The route doesn't take this method."))
	})
	routes := withHead{r}
	routes.GET("/healthz", live)
	routes.GET("/readyz", ready.ready)
	if err := s.serveDocs(routes); err != nil {
		return nil, err
	}
	if err := s.serveFront(routes, o.Version); err != nil {
		return nil, err
	}
	if o.BounceSecret != "" {
		r.POST(bouncesPath, s.bounced(o.BounceSecret))
	}
	operations := r.Group("", s.authorize, s.limit, s.checkScope, s.reserveMemory, s.validate, s.setETag)
	strict := gen.NewStrictHandlerWithOptions(s, []gen.StrictMiddlewareFunc{s.ownContext}, gen.StrictGinServerOptions{
		RequestErrorHandlerFunc:  s.undecoded,
		HandlerErrorFunc:         s.refuse,
		ResponseErrorHandlerFunc: s.refuse,
	})
	gen.RegisterHandlersWithOptions(withHead{operations}, strict, gen.GinServerOptions{
		ErrorHandler: func(c *gin.Context, err error, _ int) { s.undecoded(c, err) },
	})
	return &API{server: s, readiness: ready, engine: r}, nil
}

// withHead registers each GET route for HEAD, too, with the same handlers. The body is omitted by
// net/http.
type withHead struct{ gin.IRouter }

func (w withHead) GET(path string, handlers ...gin.HandlerFunc) gin.IRoutes {
	w.HEAD(path, handlers...)
	return w.IRouter.GET(path, handlers...)
}

// ownContext gives the operation its own Gin context, because Gin reuses contexts for later
// requests. The operation's context is read by database/sql in a goroutine that may outlive the
// request. The context also has the operation's deadline, after which the caller gets an error.
func (s *server) ownContext(next gen.StrictHandlerFunc, _ string) gen.StrictHandlerFunc {
	return func(c *gin.Context, request any) (any, error) {
		ctx, cancel := context.WithTimeout(c.Request.Context(), s.work)
		defer cancel()
		own := c.Copy()
		own.Request = own.Request.WithContext(ctx)
		return next(own, request)
	}
}

// operation returns the contract's operation for the request's route.
func (s *server) operation(c *gin.Context) operation {
	method := c.Request.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return operation{s.contract.Operations[method+" "+c.FullPath()]}
}
