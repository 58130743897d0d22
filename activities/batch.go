package activities

import (
	"context"
	"sync"
)

// batcher turns many single calls into few statements: while one batch is on
// its way, the next calls gather, and go together when it is back. A lone call
// waits for nobody.
type batcher[In, Out any] struct {
	run func(ctx context.Context, in []In) ([]Out, error)
	max int

	mu      sync.Mutex
	waiting []call[In, Out]
	busy    bool
}

type call[In, Out any] struct {
	in   In
	done chan answer[Out]
}

type answer[Out any] struct {
	out Out
	err error
}

// do joins the next batch and waits for its answer, or for the context.
func (b *batcher[In, Out]) do(ctx context.Context, in In) (Out, error) {
	// One place in the buffer: the batch never waits for a caller that left.
	c := call[In, Out]{in: in, done: make(chan answer[Out], 1)}
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	if !b.busy {
		b.busy = true
		// The batch serves several callers, so none of them may cancel it.
		go b.drain(context.WithoutCancel(ctx))
	}
	b.mu.Unlock()
	select {
	case a := <-c.done:
		return a.out, a.err
	case <-ctx.Done():
		var none Out
		return none, ctx.Err()
	}
}

func (b *batcher[In, Out]) drain(ctx context.Context) {
	for {
		b.mu.Lock()
		n := min(len(b.waiting), b.max)
		batch := b.waiting[:n:n]
		b.waiting = b.waiting[n:]
		b.busy = n > 0
		b.mu.Unlock()
		if n == 0 {
			return
		}
		b.flush(ctx, batch)
	}
}

func (b *batcher[In, Out]) flush(ctx context.Context, batch []call[In, Out]) {
	// Longer than any statement takes on a database that is well, short enough
	// for the activity to report one that isn't.
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	in := make([]In, len(batch))
	for i, c := range batch {
		in[i] = c.in
	}
	out, err := b.run(ctx, in)
	for i, c := range batch {
		if err != nil {
			c.done <- answer[Out]{err: err}
			continue
		}
		c.done <- answer[Out]{out: out[i]}
	}
}
