package api

import (
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/time/rate"

	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// limiter holds one token bucket per API key, in this process: replicas each
// grant the whole budget.
type limiter struct {
	standard int // requests a minute

	mu      sync.Mutex
	buckets map[publicid.APIKey]*bucket
}

type bucket struct {
	*rate.Limiter
	perMinute int
}

func newLimiter(standard int) *limiter {
	return &limiter{standard: standard, buckets: map[publicid.APIKey]*bucket{}}
}

func (l *limiter) bucket(key publicid.APIKey, own *int) *bucket {
	perMinute := l.standard
	if own != nil {
		perMinute = *own
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[key]
	if b == nil || b.perMinute != perMinute {
		if len(l.buckets) >= maxKnown {
			l.forgetFull()
		}
		b = &bucket{rate.NewLimiter(rate.Limit(float64(perMinute)/60), perMinute), perMinute}
		l.buckets[key] = b
	}
	return b
}

// forgetFull drops the buckets that are full again: a new one is the same.
func (l *limiter) forgetFull() {
	for key, b := range l.buckets {
		if b.Tokens() >= float64(b.perMinute) {
			delete(l.buckets, key)
		}
	}
}

// limit takes one token for the request and tells what is left.
func (s *server) limit(c *gin.Context) {
	if p := passageOf(c.Request.Context()); p != nil && p.spent.CompareAndSwap(false, true) {
		return // the surface's request has paid
	}
	caller, _ := callerOf(c)
	b := s.limits.bucket(caller.Key.ID, caller.Key.RateLimit)
	at := time.Now()
	ok := b.AllowN(at, 1)
	left := max(0, b.TokensAt(at))
	full := at.Add(time.Duration((float64(b.perMinute) - left) / float64(b.Limit()) * float64(time.Second)))
	c.Header("X-RateLimit-Limit", strconv.Itoa(b.perMinute))
	c.Header("X-RateLimit-Remaining", strconv.Itoa(int(left)))
	// When the bucket is full again.
	c.Header("X-RateLimit-Reset", strconv.FormatInt(int64(math.Ceil(float64(full.UnixNano())/1e9)), 10))
	if ok {
		return
	}
	wait := (1 - left) / float64(b.Limit())
	c.Header("Retry-After", strconv.Itoa(max(1, int(math.Ceil(wait)))))
	s.refuse(c, problem.New(problem.RateLimited, "Too many requests with this API key; try again later."))
}
