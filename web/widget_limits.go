package web

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// limits are token buckets by what requests have in common. Each process has its own: what they
// keep off is harmless, and only too much of it isn't.
type limits[K comparable] struct {
	perMinute int

	mu     sync.Mutex
	recent *list.List // of bucket[K], the latest first
	by     map[K]*list.Element
}

type bucket[K comparable] struct {
	key K
	*rate.Limiter
}

// maxBuckets of some 200 bytes: 2 MB. Who comes from more addresses than this is forgotten again.
const maxBuckets = 10_000

func newLimits[K comparable](perMinute int) *limits[K] {
	return &limits[K]{perMinute: perMinute, recent: list.New(), by: map[K]*list.Element{}}
}

// take takes a token, if there is one.
func (l *limits[K]) take(key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.by[key]
	if e == nil {
		if l.recent.Len() >= maxBuckets {
			delete(l.by, l.recent.Remove(l.recent.Back()).(bucket[K]).key)
		}
		e = l.recent.PushFront(bucket[K]{key, rate.NewLimiter(rate.Every(time.Minute/time.Duration(l.perMinute)), l.perMinute)})
		l.by[key] = e
	}
	l.recent.MoveToFront(e)
	return e.Value.(bucket[K]).Allow()
}
