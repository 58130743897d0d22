package batch

import (
	"context"
	"sync"
)

// Keyed has a batcher for each key that somebody does something of, so that the items of a
// batch have one key, and what one key waits for holds nobody else up.
type Keyed[K comparable, In, Out any] struct {
	of func(key K) *Batcher[In, Out]

	mu      sync.Mutex
	batches map[K]*used[In, Out]
}

// used is a batcher with its callers under way; without any it is forgotten.
type used[In, Out any] struct {
	*Batcher[In, Out]
	callers int
}

// NewKeyed makes one; of makes the batcher of a key.
func NewKeyed[K comparable, In, Out any](of func(key K) *Batcher[In, Out]) *Keyed[K, In, Out] {
	return &Keyed[K, In, Out]{of: of, batches: map[K]*used[In, Out]{}}
}

// Do is the one of the key's batcher.
func (k *Keyed[K, In, Out]) Do(ctx context.Context, key K, in In) (Out, error) {
	b := k.use(key)
	defer k.leave(key, b)
	return b.Do(ctx, in)
}

// DoOrNot is the one of the key's batcher.
func (k *Keyed[K, In, Out]) DoOrNot(ctx context.Context, key K, in In) (Out, error) {
	b := k.use(key)
	defer k.leave(key, b)
	return b.DoOrNot(ctx, in)
}

// DoAllOrNot is the one of the key's batcher.
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
