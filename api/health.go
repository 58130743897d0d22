package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// Check is one thing that the service needs to be ready.
type Check struct {
	Name string
	Run  func(ctx context.Context) error
}

// readyTimeout bounds all checks together: load balancers ask every few seconds.
const readyTimeout = 3 * time.Second

// live tells that the process answers.
func live(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) }

// ready tells what the service waits for, by name and in words that hold no
// address or credential.
func (s *server) ready(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), readyTimeout)
	defer cancel()
	// At once, so that one that hangs doesn't use up the time of the others.
	failures := make([]error, len(s.checks))
	var all sync.WaitGroup
	for i, check := range s.checks {
		all.Go(func() { failures[i] = check.Run(ctx) })
	}
	all.Wait()
	status, checks := http.StatusOK, gin.H{}
	for i, check := range s.checks {
		checks[check.Name] = "ok"
		if err := failures[i]; err != nil {
			status, checks[check.Name] = http.StatusServiceUnavailable, "unavailable"
			s.log.WarnContext(ctx, "not ready", "check", check.Name, "error", err)
		}
	}
	word := "ready"
	if status != http.StatusOK {
		word = "not ready"
	}
	c.JSON(status, gin.H{"status": word, "checks": checks})
}
