package earshot

import (
	"errors"
	"net/http"
	"time"
)

const (
	firstBackoff    = 500 * time.Millisecond
	longestBackoff  = 8 * time.Second
	longestWait     = time.Minute // what is longer is the caller's to wait for
	longestLateness = time.Second
)

// mendable tells whether the same request may get another answer.
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
	return e.Status/100 == 2 // something between here and the service answered in its place
}

// backoff is how long to wait after attempt n, the first of which is 0, and whether there is a point in it.
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

// part is a random part of a time, so that callers who failed together don't come back together.
func (c *core) part(d time.Duration) time.Duration { return time.Duration(c.random() * float64(d)) }
