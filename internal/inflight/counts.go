package inflight

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

// States has a state for each key with operations in flight, and their number. Its user locks it.
type States[K comparable, V any] struct {
	Counts Counts[K]
	Of     map[K]V
	first  func() V
}

// NewStates returns states whose first state of a key comes from first.
func NewStates[K comparable, V any](first func() V) States[K, V] {
	return States[K, V]{Counts: Counts[K]{}, Of: map[K]V{}, first: first}
}

// Up counts an operation that begins, and returns the state of its key.
func (s States[K, V]) Up(key K) V {
	state, ok := s.Of[key]
	if !ok {
		state = s.first()
		s.Of[key] = state
	}
	s.Counts.Up(key)
	return state
}

// Down counts an operation that ends. It forgets the state of a key without operations.
func (s States[K, V]) Down(key K) {
	if s.Counts.Down(key); s.Counts[key] == 0 {
		delete(s.Of, key)
	}
}
