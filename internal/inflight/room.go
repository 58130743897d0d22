package inflight

import "sync"

// Room has a number of places for each key, and a number of places in total. Enter never waits.
type Room[K comparable] struct {
	ofOne, ofAll int

	mu  sync.Mutex
	of  Counts[K]
	all int
}

// NewRoom makes a room with ofOne places for each key and ofAll places in total.
func NewRoom[K comparable](ofOne, ofAll int) *Room[K] {
	return &Room[K]{ofOne: ofOne, ofAll: ofAll, of: Counts[K]{}}
}

// Enter takes a place until leave is called. It returns false if there is no free place.
func (r *Room[K]) Enter(of K) (leave func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[of] >= r.ofOne || r.all >= r.ofAll {
		return nil, false
	}
	r.of.Up(of)
	r.all++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all--
		r.of.Down(of)
	}, true
}
