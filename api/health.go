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

// Check is one thing that the service needs to be ready.
type Check struct {
	Name string
	Run  func(ctx context.Context) error
}

const (
	// readyTimeout bounds all checks together: load balancers ask every few seconds.
	readyTimeout = 3 * time.Second
	// rememberReady is how long an answer of /readyz holds. Nobody needs a key to ask,
	// and each look asks Postgres and Temporal.
	rememberReady = time.Second
	checkOK       = "ok"
)

// live tells that the process answers.
func live(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) }

// NewHealth is the handler of /healthz and /readyz, for a process that serves nothing
// else.
func NewHealth(checks []Check, log *slog.Logger) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	routes := withHead{r}
	routes.GET("/healthz", live)
	routes.GET("/readyz", newReadiness(checks, log).ready)
	return r
}

// readiness runs the checks once at a time, and once a second.
type readiness struct {
	checks []Check
	log    *slog.Logger
	// leaving is closed when the process stops, which answers as long as it does.
	leaving chan struct{}
	leave   sync.Once

	flight singleflight.Group
	// Only the flight, of which there is one at a time, uses these.
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

// ready tells what the service waits for, by name and in words that hold no
// address or credential.
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
			// It is the answer of all who wait, so none of them may cancel it.
			r.known = r.look(context.WithoutCancel(ctx))
			r.until = time.Now().Add(rememberReady)
		}
		return r.known, nil
	})
	return found.(verdict)
}

// Leave has /readyz say no from now on, and each connection end with its next answer, while
// every request is answered as before. So a balancer sends what is new elsewhere, and a
// client isn't writing on a connection while it is closed.
// Who waits for an event is answered.
func (a *API) Leave() { a.readiness.leave.Do(func() { close(a.readiness.leaving) }) }

// left reports whether the process stops.
func (r *readiness) left() bool {
	select {
	case <-r.leaving:
		return true
	default:
		return false
	}
}

// endConnections is for a process that stops.
func (r *readiness) endConnections(c *gin.Context) {
	if r.left() {
		c.Header("Connection", "close")
	}
}

func (r *readiness) look(ctx context.Context) verdict {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	// At once, so that one that hangs doesn't use up the time of the others.
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
