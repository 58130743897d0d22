// Package keyring caches the results of API key look-ups for a moment.
package keyring

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"
	"golang.org/x/sync/singleflight"

	"earshot/internal/access"
	"earshot/internal/change"
)

// Remembered is the time for which an authenticated key is trusted without a look-up. A revoked key
// must be refused everywhere within 1 s.
const Remembered = 900 * time.Millisecond

// lookUpTimeout is about a thousand times the duration of a look-up.
const lookUpTimeout = 5 * time.Second

// Keyring caches the callers of valid keys, so that a busy key isn't looked up for every request.
// It uses the SHA-256 of a key, as the index in the database does. The duration of a look-up can
// reveal only how much of a hash was right, which doesn't reveal a key. Keys are never compared
// with each other.
type Keyring struct {
	authenticate func(ctx context.Context, key string) (*change.Caller, error)

	flight singleflight.Group
	// known has an interface as its type for the same reason as batch.Batcher.
	known interface {
		Get(hash [sha256.Size]byte) (remembered, bool)
		Add(hash [sha256.Size]byte, r remembered) (evicted bool)
		Remove(hash [sha256.Size]byte) bool
	}
}

type remembered struct {
	caller *change.Caller
	until  time.Time
}

// maxKnown bounds the memory.
const maxKnown = 10_000

// New makes a keyring that looks up keys with authenticate.
func New(authenticate func(ctx context.Context, key string) (*change.Caller, error)) *Keyring {
	// A key may end before Remembered is over, so each entry has an end of its own. With a lifetime for all, the
	// library would start a goroutine that never ends.
	known := expirable.NewLRU[[sha256.Size]byte, remembered](maxKnown, nil, 0)
	return &Keyring{authenticate: authenticate, known: known}
}

// Find returns the caller with the key. For an invalid key it returns the error of the look-up.
func (k *Keyring) Find(ctx context.Context, key string) (*change.Caller, error) {
	hash := sha256.Sum256([]byte(key))
	r, ok := k.known.Get(hash)
	if ok && time.Now().Before(r.until) {
		return r.caller, nil
	}
	found, err, _ := k.flight.Do(string(hash[:]), func() (any, error) {
		// The look-up serves several requests, so none of them may cancel it. The timeout prevents
		// a hanging connection from blocking all of them.
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
	// The time starts before the look-up, so that a revocation during the look-up takes effect in
	// time.
	until := time.Now().Add(Remembered)
	caller, err := k.authenticate(ctx, key)
	if err != nil {
		k.known.Remove(hash)
		return nil, err
	}
	if end := access.KeyEnds(caller.Key); end != nil && end.Before(until) {
		until = *end
	}
	k.known.Add(hash, remembered{caller, until})
	return caller, nil
}
