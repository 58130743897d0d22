package api

import (
	"math"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"earshot/internal/problem"
	"earshot/internal/ratelimit"
)

// limit takes one token for the request and adds the remaining budget to the answer.
func (s *server) limit(c *gin.Context) {
	if call := callOf(c); call != nil && call.paid {
		return
	}
	caller, _ := callerOf(c)
	l := s.limits.Take(caller.Key.ID, caller.Key.RateLimit)
	if l.Alone != nil {
		s.log.WarnContext(c.Request.Context(), "a rate limit was kept without the database",
			"keyId", caller.Key.ID, "passed", l.OK, "error", l.Alone, "requestId", requestID(c))
	}
	if !l.OK {
		s.refuseRate(c, l, keyBudget, "Too many requests with this API key; try again later.")
		return
	}
	tell(c, l)
}

// refuseRate answers every request that a rate limit refuses.
func (s *server) refuseRate(c *gin.Context, l ratelimit.Decision, limit, message string) {
	s.countRefusal(c, limit)
	tell(c, l)
	// The seconds until the next token, rounded up.
	wait := math.Ceil((1 - l.Left) * 60 / float64(l.PerMinute))
	c.Header("Retry-After", strconv.Itoa(max(1, int(wait))))
	s.refuse(c, problem.New(problem.RateLimited, message))
}

// tell adds the state of a bucket to the answer.
func tell(c *gin.Context, l ratelimit.Decision) {
	full := l.At.Add(time.Duration((float64(l.PerMinute) - l.Left) * 60 / float64(l.PerMinute) * float64(time.Second)))
	c.Header("X-RateLimit-Limit", strconv.Itoa(l.PerMinute))
	// Times are stored in microseconds, so a full token may lack a fraction.
	c.Header("X-RateLimit-Remaining", strconv.Itoa(int(l.Left+0.001)))
	// The time at which the bucket is full again.
	c.Header("X-RateLimit-Reset", strconv.FormatInt(int64(math.Ceil(float64(full.UnixNano())/1e9)), 10))
}
