package api

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime/debug"
	"sync"
)

// doorman tells whether there is a key with a hash at all, before anything else is
// asked of the database. One question is under way at a time, and those that come
// meanwhile go together in the next: however many keys somebody makes up, they cost
// one connection, and nobody with a valid key waits longer than for two questions.
type doorman struct {
	ask func(ctx context.Context, hashes [][]byte) (there [][]byte, err error)

	mu   sync.Mutex
	next *question
	busy bool
}

// question is about as many hashes as there are requests at once.
type question struct {
	hashes [][]byte
	done   chan struct{}
	there  map[[sha256.Size]byte]bool
	err    error
	// panicked is what asking ended with, and where. In a goroutine of its own it
	// would end the process.
	panicked string
}

func (d *doorman) knows(ctx context.Context, hash [sha256.Size]byte) (bool, error) {
	d.mu.Lock()
	if d.next == nil {
		d.next = &question{done: make(chan struct{})}
	}
	q := d.next
	q.hashes = append(q.hashes, hash[:])
	if !d.busy {
		d.busy = true
		// It serves several requests, so none of them may cancel it.
		go d.work(context.WithoutCancel(ctx))
	}
	d.mu.Unlock()
	select {
	case <-q.done:
		if q.panicked != "" {
			panic(q.panicked)
		}
		return q.there[hash], q.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// work asks until there is nothing to ask.
func (d *doorman) work(ctx context.Context) {
	for {
		d.mu.Lock()
		q := d.next
		d.next, d.busy = nil, q != nil
		d.mu.Unlock()
		if q == nil {
			return
		}
		q.answer(ctx, d.ask)
		close(q.done)
	}
}

func (q *question) answer(ctx context.Context, ask func(context.Context, [][]byte) ([][]byte, error)) {
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	defer func() {
		if what := recover(); what != nil {
			q.panicked = fmt.Sprintf("%v\n\n%s", what, debug.Stack())
		}
	}()
	there, err := ask(ctx, q.hashes)
	q.err, q.there = err, make(map[[sha256.Size]byte]bool, len(there))
	for _, hash := range there {
		q.there[[sha256.Size]byte(hash)] = true
	}
}
