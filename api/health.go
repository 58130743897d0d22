package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/singleflight"
)

// Check tests one dependency of the service.
type Check struct {
	Name string
	Run  func(ctx context.Context) error
}

const (
	// readyTimeout is the limit for all checks together. Load balancers ask every few seconds.
	readyTimeout = 3 * time.Second
	// rememberReady is the time for which an answer of /readyz is reused. The route needs no key,
	// and each run of the checks queries Postgres and Temporal.
	rememberReady = time.Second
	checkOK       = "ok"
)

// live reports that the process is running.
func live(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) }

// NewHealth returns the handler of /healthz and /readyz for a process that serves nothing else.
func NewHealth(checks []Check, log *slog.Logger) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	routes := withHead{r}
	routes.GET("/healthz", live)
	routes.GET("/readyz", newReadiness(checks, log).ready)
	return r
}

// readiness runs the checks at most once a second, one run at a time.
type readiness struct {
	checks []Check
	log    *slog.Logger
	// leaving is closed when the process begins to stop. The process then still answers requests.
	leaving chan struct{}
	leave   sync.Once

	flight singleflight.Group
	// Only the flight uses known and until, and there is one flight at a time.
	known verdict
	until time.Time
}

func newReadiness(checks []Check, log *slog.Logger) *readiness {
	return &readiness{checks: checks, log: log, leaving: make(chan struct{})}
}

// verdict is an answer of /readyz.
type verdict struct {
	status int
	body   gin.H
}

// ready reports the state of each check by name, without addresses or credentials.
func (r *readiness) ready(c *gin.Context) {
	if r.left() {
		c.JSON(http.StatusServiceUnavailable, gin.H{"status": "stopping"})
		return
	}
	v := r.current(c.Request.Context())
	c.JSON(v.status, v.body)
}

func (r *readiness) current(ctx context.Context) verdict {
	found, _, _ := r.flight.Do("", func() (any, error) {
		if !time.Now().Before(r.until) {
			// All waiting requests get this answer, so none of them may cancel the checks.
			r.known = r.look(context.WithoutCancel(ctx))
			r.until = time.Now().Add(rememberReady)
		}
		return r.known, nil
	})
	return found.(verdict)
}

// Leave makes /readyz report that the process is stopping, and closes each connection after its
// next answer. Requests are still answered. Reads that wait for an event are answered immediately.
// The load balancer then sends new requests elsewhere, and no client writes on a connection that is
// being closed.
func (a *API) Leave() { a.readiness.leave.Do(func() { close(a.readiness.leaving) }) }

// left reports whether the process is stopping.
func (r *readiness) left() bool {
	select {
	case <-r.leaving:
		return true
	default:
		return false
	}
}

// endConnections closes each connection after its answer if the process is stopping.
func (r *readiness) endConnections(c *gin.Context) {
	if r.left() {
		c.Header("Connection", "close")
	}
}

func (r *readiness) look(ctx context.Context) verdict {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	// In parallel, so that one slow check doesn't use up the time of the others.
	failures := make([]error, len(r.checks))
	var all sync.WaitGroup
	for i, check := range r.checks {
		all.Go(func() { failures[i] = check.Run(ctx) })
	}
	all.Wait()
	status, word, checks := http.StatusOK, "ready", gin.H{}
	for i, check := range r.checks {
		checks[check.Name] = checkOK
		if err := failures[i]; err != nil {
			status, word, checks[check.Name] = http.StatusServiceUnavailable, "not ready", "unavailable"
			r.log.WarnContext(ctx, "not ready", "check", check.Name, "error", err)
		}
	}
	return verdict{status, gin.H{"status": word, "checks": checks}}
}
