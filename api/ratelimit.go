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
	// The moment is taken under it: a moment before the last one would set the
	// bucket's clock back, and it would refill for the same time twice.
	mu sync.Mutex
}

// take takes one token, if there is one, and tells what is left.
func (b *bucket) take() (ok bool, left float64, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at = time.Now()
	ok = b.AllowN(at, 1)
	return ok, max(0, b.TokensAt(at)), at
}

// tell puts the state of the bucket into the answer.
func (b *bucket) tell(c *gin.Context, left float64, at time.Time) {
	full := at.Add(time.Duration((float64(b.perMinute) - left) / float64(b.Limit()) * float64(time.Second)))
	c.Header("X-RateLimit-Limit", strconv.Itoa(b.perMinute))
	c.Header("X-RateLimit-Remaining", strconv.Itoa(int(left)))
	// When the bucket is full again.
	c.Header("X-RateLimit-Reset", strconv.FormatInt(int64(math.Ceil(float64(full.UnixNano())/1e9)), 10))
}

// wait is in how many whole seconds there is a token again.
func (b *bucket) wait(left float64) string {
	return strconv.Itoa(max(1, int(math.Ceil((1-left)/float64(b.Limit())))))
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
		b = newBucket(perMinute)
		l.buckets[key] = b
	}
	return b
}

func newBucket(perMinute int) *bucket {
	return &bucket{Limiter: rate.NewLimiter(rate.Limit(float64(perMinute)/60), perMinute), perMinute: perMinute}
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
	if call := callOf(c); call != nil && call.paid {
		return
	}
	caller, _ := callerOf(c)
	b := s.limits.bucket(caller.Key.ID, caller.Key.RateLimit)
	ok, left, at := b.take()
	b.tell(c, left, at)
	if ok {
		return
	}
	c.Header("Retry-After", b.wait(left))
	s.countRefusal(c, keyBudget)
	s.refuse(c, problem.New(problem.RateLimited, "Too many requests with this API key; try again later."))
}
