// Package batch collects single calls into few large ones: calls that arrive while a batch runs
// share the next batch.
package batch

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/go-faster/errors"
)

// Batcher collects single items into batches and runs one batch at a time. An item that arrives
// while no batch runs starts one immediately.
//
// It is an interface, so that only the packages that call New compile its methods. The methods of a generic
// struct are compiled again in each package that uses a type with a field of it.
type Batcher[In, Out any] interface {
	// Do adds the item to the next batch and waits for its result. If the context ends, Do returns, but
	// the batch may still process the item, because a batch serves several callers. For the same
	// reason, do does not get the values of the callers' contexts.
	Do(ctx context.Context, in In) (Out, error)
	// DoAllOrNot is Do for several items of a caller that must know whether they were processed. If the context
	// ends before the batch of an item starts, the item is removed and is not processed. After that, DoAllOrNot
	// waits for the batch. Its results are in the order of the items.
	DoAllOrNot(ctx context.Context, in []In) []Result[Out]
}

// batcher is the implementation of Batcher.
//
// A caller of DoAllOrNot itself runs the batch that it starts, because it waits for the batch anyway. A
// new goroutine would first grow its stack, which took a tenth of the service's time for a lone write.
type batcher[In, Out any] struct {
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

// New makes a batcher. A batch has at most limit items and must end within timeout. The function do
// returns one result for each item, in the order of the items. Its error fails all items, so an
// error of a single item belongs in that item's Out.
func New[In, Out any](limit int, timeout time.Duration, do func(ctx context.Context, in []In) ([]Out, error)) Batcher[In, Out] {
	return &batcher[In, Out]{limit: limit, timeout: timeout, do: do}
}

func (b *batcher[In, Out]) Do(ctx context.Context, in In) (Out, error) {
	added, first := b.add(in)
	if first {
		go b.work()
	}
	i := added[0]
	select {
	case r := <-i.done:
		return r.Out, r.Err
	case <-ctx.Done():
		var none Out
		return none, left(ctx)
	}
}

// Result is the result or the error of one item.
type Result[Out any] struct {
	Out Out
	Err error
}

func (b *batcher[In, Out]) DoAllOrNot(ctx context.Context, in []In) []Result[Out] {
	out := make([]Result[Out], len(in))
	if ctx.Err() != nil {
		for n := range out {
			out[n].Err = left(ctx)
		}
		return out
	}
	added, first := b.add(in...)
	if first && b.runNext() {
		go b.work()
	}
	for n, i := range added {
		out[n].Out, out[n].Err = b.doneOrNot(ctx, i)
	}
	return out
}

func (b *batcher[In, Out]) doneOrNot(ctx context.Context, i item[In, Out]) (Out, error) {
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

// add appends items to the queue, next to each other. First is true if no batch runs. The caller then
// has to run the batches.
func (b *batcher[In, Out]) add(in ...In) (added []item[In, Out], first bool) {
	added = make([]item[In, Out], len(in))
	for n := range in {
		// The buffer holds the result, so the batch never waits for a caller that left.
		added[n] = item[In, Out]{in: in[n], done: make(chan Result[Out], 1)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, added...)
	first = !b.busy && len(added) > 0
	b.busy = b.busy || first
	return added, first
}

// remove takes an item out of the queue. It reports false if a batch already has the item.
func (b *batcher[In, Out]) remove(i item[In, Out]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.IndexFunc(b.waiting, func(w item[In, Out]) bool { return w.done == i.done })
	if at < 0 {
		return false
	}
	// Copy the slice: the running batch shares its array.
	b.waiting = slices.Concat(b.waiting[:at], b.waiting[at+1:])
	return true
}

// work runs batches until the queue is empty.
func (b *batcher[In, Out]) work() {
	for b.runNext() {
	}
}

// runNext runs the next batch. It reports whether more items wait. If not, the next item is the first
// again.
func (b *batcher[In, Out]) runNext() (more bool) {
	// Callers that are ready to run join this batch. Otherwise the first one of them would start a
	// batch alone, and the others would wait for its commit.
	runtime.Gosched()
	b.mu.Lock()
	n := min(len(b.waiting), b.limit)
	items := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	b.mu.Unlock()
	if n > 0 { // their callers may have removed the items
		b.run(items)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy = len(b.waiting) > 0
	return b.busy
}

func (b *batcher[In, Out]) run(items []item[In, Out]) {
	in := make([]In, len(items))
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

// call turns a panic into an error. Otherwise a panic would end the process, or only the caller, and then
// no batch would run any more.
func (b *batcher[In, Out]) call(in []In) (out []Out, err error) {
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

// PanicError is the error of all items of a batch that panicked.
type PanicError struct {
	Value any
	Stack []byte
}

func (p *PanicError) Error() string {
	return fmt.Sprintf("panic in a batch: %v\n\n%s", p.Value, p.Stack)
}
