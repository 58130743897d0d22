// Package batch makes few calls out of many: what comes while one call is under way
// shares the next one.
package batch

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/go-faster/errors"
)

// Batcher collects single items into batches, one of which is under way at a time. A
// lone item waits for nobody.
type Batcher[In, Out any] struct {
	limit   int
	timeout time.Duration
	do      func(ctx context.Context, in []In) ([]Out, error)

	mu      sync.Mutex
	waiting []item[In, Out]
	busy    bool
}

type item[In, Out any] struct {
	in   In
	done chan Result[Out]
}

// New makes a batcher of at most so many items a batch, each of which has so much time.
// What do returns is in the order of the items, one for each; its error is all of theirs,
// so what concerns one item alone belongs into that item's Out.
func New[In, Out any](limit int, timeout time.Duration, do func(ctx context.Context, in []In) ([]Out, error)) *Batcher[In, Out] {
	return &Batcher[In, Out]{limit: limit, timeout: timeout, do: do}
}

// Do has the item done with the next batch. The end of the context ends the wait alone: the
// item may be done all the same, because a batch serves several callers. For the same reason
// it has none of their contexts' values.
func (b *Batcher[In, Out]) Do(ctx context.Context, in In) (Out, error) {
	i := b.add(in)[0]
	select {
	case r := <-i.done:
		return r.Out, r.Err
	case <-ctx.Done():
		var none Out
		return none, left(ctx)
	}
}

// DoOrNot is Do for who has to know whether the item is done. The end of the context ends the
// wait only while the item's batch isn't under way, and then it isn't done.
func (b *Batcher[In, Out]) DoOrNot(ctx context.Context, in In) (Out, error) {
	return b.doneOrNot(ctx, b.add(in)[0])
}

// Result is what became of one item of several.
type Result[Out any] struct {
	Out Out
	Err error
}

// DoAllOrNot is DoOrNot for items that are there at once; its results are in their order.
func (b *Batcher[In, Out]) DoAllOrNot(ctx context.Context, in []In) []Result[Out] {
	out := make([]Result[Out], len(in))
	for n, i := range b.add(in...) {
		out[n].Out, out[n].Err = b.doneOrNot(ctx, i)
	}
	return out
}

func (b *Batcher[In, Out]) doneOrNot(ctx context.Context, i item[In, Out]) (Out, error) {
	select {
	case r := <-i.done:
		return r.Out, r.Err
	case <-ctx.Done():
	}
	if b.remove(i) {
		var none Out
		return none, left(ctx)
	}
	r := <-i.done
	return r.Out, r.Err
}

func left(ctx context.Context) error { return errors.Wrap(context.Cause(ctx), "wait for a batch") }

// add has items wait, next to each other.
func (b *Batcher[In, Out]) add(in ...In) []item[In, Out] {
	added := make([]item[In, Out], len(in))
	for n := range in {
		// One place in the buffer: the batch never waits for a caller that left.
		added[n] = item[In, Out]{in: in[n], done: make(chan Result[Out], 1)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, added...)
	if !b.busy && len(added) > 0 {
		b.busy = true
		go b.work()
	}
	return added
}

// remove takes out an item that still waits, if it does.
func (b *Batcher[In, Out]) remove(i item[In, Out]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.IndexFunc(b.waiting, func(w item[In, Out]) bool { return w.done == i.done })
	if at < 0 {
		return false
	}
	// Not in place: a batch that is under way has its items of the same array.
	b.waiting = slices.Concat(b.waiting[:at], b.waiting[at+1:])
	return true
}

// work makes batches until nothing waits.
func (b *Batcher[In, Out]) work() {
	for {
		b.mu.Lock()
		n := min(len(b.waiting), b.limit)
		items := b.waiting[:n:n]
		b.waiting = b.waiting[n:]
		b.busy = n > 0
		b.mu.Unlock()
		if n == 0 {
			return
		}
		in := make([]In, n)
		for i := range items {
			in[i] = items[i].in
		}
		out, err := b.call(in)
		for i := range items {
			var r Result[Out]
			if r.Err = err; err == nil {
				r.Out = out[i]
			}
			items[i].done <- r
		}
	}
}

// call turns a panic into an error: in this goroutine it would end the process.
func (b *Batcher[In, Out]) call(in []In) (out []Out, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), b.timeout)
	defer cancel()
	defer func() {
		if what := recover(); what != nil {
			err = &PanicError{Value: what, Stack: debug.Stack()}
		}
	}()
	out, err = b.do(ctx, in)
	if err == nil && len(out) != len(in) {
		return nil, errors.Errorf("a batch of %d has %d results", len(in), len(out))
	}
	return out, err
}

// PanicError is what all items of a batch end with that panicked.
type PanicError struct {
	Value any
	Stack []byte
}

func (p *PanicError) Error() string {
	return fmt.Sprintf("panic in a batch: %v\n\n%s", p.Value, p.Stack)
}
