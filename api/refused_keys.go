package api

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/time/rate"

	"earshot/internal/access"
)

// refusedKeys counts the keys that were refused, by where they came from. Only a key
// that is refused meets it: many clients share one address, and one of them that
// guesses must not keep out those with valid keys.
type refusedKeys struct {
	mu sync.Mutex
	// recent are networks, the latest first; the number of them is bounded.
	recent *list.List
	by     map[netip.Prefix]*list.Element
}

type network struct {
	at netip.Prefix
	*bucket
}

type bucket struct {
	*rate.Limiter
	// The moment is taken under it: a moment before the last one would set the
	// bucket's clock back, and it would refill for the same time twice.
	mu sync.Mutex
}

// take takes one token, if there is one, and tells what is left.
func (b *bucket) take() access.RateLimit {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := time.Now()
	ok := b.AllowN(at, 1)
	return access.RateLimit{OK: ok, PerMinute: wrongKeys, Left: max(0, b.TokensAt(at)), At: at}
}

const (
	// Wrong keys of an address a minute, and at once: a program that was given an
	// old key shows, and nobody guesses 238 bits at this rate or any other.
	wrongKeys = 30
	// Some 300 bytes each, so 3 MB. Who has more networks than this to guess from
	// gets forgotten, and gains the work of a look-up that is shared.
	maxNetworks = 10_000
)

func newRefusedKeys() *refusedKeys {
	return &refusedKeys{recent: list.New(), by: map[netip.Prefix]*list.Element{}}
}

func (r *refusedKeys) bucket(at netip.Prefix) *bucket {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.by[at]; e != nil {
		r.recent.MoveToFront(e)
		return e.Value.(network).bucket
	}
	if r.recent.Len() >= maxNetworks {
		oldest := r.recent.Back()
		delete(r.by, r.recent.Remove(oldest).(network).at)
	}
	n := network{at, &bucket{Limiter: rate.NewLimiter(rate.Limit(wrongKeys)/60, wrongKeys)}}
	r.by[at] = r.recent.PushFront(n)
	return n.bucket
}

// refuseKey answers a key that isn't valid: 401, and 429 to whoever had many.
func (s *server) refuseKey(c *gin.Context, err error) {
	l := s.refusedKeys.bucket(clientNetwork(clientAddress(c.Request, s.proxies))).take()
	if l.OK {
		s.refuse(c, err)
		return
	}
	s.refuseRate(c, l, refusedOnes, "Too many API keys that are not valid came from this address; try again later.")
}
