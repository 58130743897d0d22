package api

import (
	"container/list"
	"net/netip"
	"sync"

	"github.com/gin-gonic/gin"

	"earshot/internal/problem"
)

// guesses counts the keys that were refused, by where they came from. Only a key
// that is refused meets it: many clients share one address, and one of them that
// guesses must not keep out those with valid keys.
type guesses struct {
	mu sync.Mutex
	// recent are *neighbour, the latest first; the number of them is bounded.
	recent *list.List
	by     map[netip.Prefix]*list.Element
}

type neighbour struct {
	at netip.Prefix
	*bucket
}

const (
	// Wrong keys of an address a minute, and at once: a program that was given an
	// old key shows, and nobody guesses 238 bits at this rate or any other.
	wrongKeys = 30
	// Some 300 bytes each, so 3 MB. Who has more networks than this to guess from
	// gets forgotten, and gains the work of a look-up that is shared.
	maxNeighbours = 10_000
)

func newGuesses() *guesses {
	return &guesses{recent: list.New(), by: map[netip.Prefix]*list.Element{}}
}

func (g *guesses) bucket(at netip.Prefix) *bucket {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.by[at]; e != nil {
		g.recent.MoveToFront(e)
		return e.Value.(neighbour).bucket
	}
	if g.recent.Len() >= maxNeighbours {
		oldest := g.recent.Back()
		delete(g.by, g.recent.Remove(oldest).(neighbour).at)
	}
	n := neighbour{at, newBucket(wrongKeys)}
	g.by[at] = g.recent.PushFront(n)
	return n.bucket
}

// refuseKey answers a key that isn't valid: 401, and 429 to whoever had many.
func (s *server) refuseKey(c *gin.Context, err error) {
	b := s.guesses.bucket(neighbourhood(clientAddress(c.Request, s.proxies)))
	ok, left, at := b.take()
	if ok {
		s.refuse(c, err)
		return
	}
	b.tell(c, left, at)
	c.Header("Retry-After", b.wait(left))
	s.refuse(c, problem.New(problem.RateLimited,
		"Too many API keys that are not valid came from this address; try again later."))
}
