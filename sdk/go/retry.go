package earshot

import (
	"errors"
	"net/http"
	"time"
)

const (
	firstBackoff    = 500 * time.Millisecond
	longestBackoff  = 8 * time.Second
	longestWait     = time.Minute // the caller has to handle longer waits
	longestLateness = time.Second
)

// mendable reports whether a retry may succeed.
func mendable(err error) bool {
	if e := (*ConnectionError)(nil); errors.As(err, &e) {
		return true
	}
	e := (*Error)(nil)
	if !errors.As(err, &e) {
		return false
	}
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusConflict:
		return e.Code == ErrIdempotencyInProgress
	}
	return e.Status/100 == 2 // a proxy answered in the service's place
}

// backoff returns the wait after attempt n, counted from 0, and whether a retry makes sense.
func (c *core) backoff(n int, err error) (wait time.Duration, again bool) {
	if !mendable(err) {
		return 0, false
	}
	if e := (*Error)(nil); errors.As(err, &e) && e.RetryAfter > 0 {
		late := min(e.RetryAfter/10, longestLateness)
		return e.RetryAfter + c.part(late), e.RetryAfter <= longestWait
	}
	d := longestBackoff
	if n < 4 {
		d = firstBackoff << n
	}
	return d/2 + c.part(d/2), true
}

// part returns a random part of d, so that callers that failed together don't retry together.
func (c *core) part(d time.Duration) time.Duration { return time.Duration(c.random() * float64(d)) }
