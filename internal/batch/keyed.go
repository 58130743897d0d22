package batch

import (
	"context"
	"sync"
)

// Keyed has one batcher for each key in use. A batch therefore has items of one key only, and a
// slow batch of one key does not delay other keys.
type Keyed[K comparable, In, Out any] struct {
	of func(key K) Batcher[In, Out]

	mu      sync.Mutex
	batches map[K]*used[In, Out]
}

// used is a batcher with the number of its current callers. At zero it is removed.
type used[In, Out any] struct {
	Batcher[In, Out]
	callers int
}

// NewKeyed makes a Keyed. The function of makes the batcher of a key.
func NewKeyed[K comparable, In, Out any](of func(key K) Batcher[In, Out]) *Keyed[K, In, Out] {
	return &Keyed[K, In, Out]{of: of, batches: map[K]*used[In, Out]{}}
}

// DoAllOrNot calls DoAllOrNot of the key's batcher.
func (k *Keyed[K, In, Out]) DoAllOrNot(ctx context.Context, key K, in []In) []Result[Out] {
	b := k.use(key)
	defer k.leave(key, b)
	return b.DoAllOrNot(ctx, in)
}

func (k *Keyed[K, In, Out]) use(key K) *used[In, Out] {
	k.mu.Lock()
	defer k.mu.Unlock()
	b := k.batches[key]
	if b == nil {
		b = &used[In, Out]{Batcher: k.of(key)}
		k.batches[key] = b
	}
	b.callers++
	return b
}

func (k *Keyed[K, In, Out]) leave(key K, b *used[In, Out]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if b.callers--; b.callers == 0 {
		delete(k.batches, key)
	}
}
