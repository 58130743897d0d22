package inflight

import "sync"

// Counts has the number of operations in flight of each key. Its user locks it.
type Counts[K comparable] map[K]int

// Up counts an operation that begins.
func (c Counts[K]) Up(key K) { c[key]++ }

// Down counts an operation that ends. It forgets a key without operations.
func (c Counts[K]) Down(key K) {
	if c[key]--; c[key] == 0 {
		delete(c, key)
	}
}

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
