// Package keyring remembers for a moment whose API keys are valid.
package keyring

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"earshot/internal/access"
	"earshot/internal/change"
)

// Remembered is how long an authenticated key is taken at its word. A revoked
// key must be refused everywhere within 1 s.
const Remembered = 900 * time.Millisecond

// lookUpTimeout is some thousand times what a look-up takes.
const lookUpTimeout = 5 * time.Second

// Keyring remembers who valid keys belong to, so that a busy key isn't looked
// up for every request. It goes by SHA-256, as the database's index does: how long
// a look-up takes tells at most how much of a hash was right, which leads nobody to
// a key, and no key is ever compared with another.
type Keyring struct {
	authenticate func(ctx context.Context, key string) (*change.Caller, error)

	flight singleflight.Group
	mu     sync.Mutex
	known  map[[sha256.Size]byte]remembered
}

type remembered struct {
	caller *change.Caller
	until  time.Time
}

// maxKnown bounds the memory; beyond, everything is looked up again once.
const maxKnown = 10_000

// New makes a keyring that looks keys up by authenticate.
func New(authenticate func(ctx context.Context, key string) (*change.Caller, error)) *Keyring {
	return &Keyring{authenticate: authenticate, known: map[[sha256.Size]byte]remembered{}}
}

// Find is the caller with the key. A key that isn't valid ends with the error of the look-up.
func (k *Keyring) Find(ctx context.Context, key string) (*change.Caller, error) {
	hash := sha256.Sum256([]byte(key))
	k.mu.Lock()
	r, ok := k.known[hash]
	k.mu.Unlock()
	if ok && time.Now().Before(r.until) {
		return r.caller, nil
	}
	found, err, _ := k.flight.Do(string(hash[:]), func() (any, error) {
		// It serves several requests, so none of them may cancel it, and a
		// connection that hangs must not hold all of them.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookUpTimeout)
		defer cancel()
		return k.lookUp(ctx, hash, key)
	})
	if err != nil {
		return nil, err
	}
	return found.(*change.Caller), nil
}

func (k *Keyring) lookUp(ctx context.Context, hash [sha256.Size]byte, key string) (*change.Caller, error) {
	// Taken before the look-up: a revocation that comes during it counts.
	until := time.Now().Add(Remembered)
	caller, err := k.authenticate(ctx, key)
	if err != nil {
		k.forget(hash)
		return nil, err
	}
	if end := access.KeyEnds(caller.Key); end != nil && end.Before(until) {
		until = *end
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= maxKnown {
		clear(k.known)
	}
	k.known[hash] = remembered{caller, until}
	return caller, nil
}

func (k *Keyring) forget(hash [sha256.Size]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, hash)
}
