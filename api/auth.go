package api

import (
	"context"
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/singleflight"

	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/problem"
)

// rememberKey is how long an authenticated key is taken at its word. A revoked
// key must be refused everywhere within 1 s.
const rememberKey = 900 * time.Millisecond

// lookUpTimeout is some thousand times what a look-up takes.
const lookUpTimeout = 5 * time.Second

// keyring remembers who valid keys belong to, so that a busy key isn't looked
// up for every request. It goes by SHA-256, as the database's index does: how long
// a look-up takes tells at most how much of a hash was right, which leads nobody to
// a key, and no key is ever compared with another.
type keyring struct {
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

func (k *keyring) find(ctx context.Context, key string) (*change.Caller, error) {
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

func (k *keyring) lookUp(ctx context.Context, hash [sha256.Size]byte, key string) (*change.Caller, error) {
	// Taken before the look-up: a revocation that comes during it counts.
	until := time.Now().Add(rememberKey)
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

func (k *keyring) forget(hash [sha256.Size]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, hash)
}

// authorize lets a request through that carries a valid key whose scope covers
// the operation.
func (s *server) authorize(c *gin.Context) {
	if call := callOf(c); call != nil {
		c.Set(callerKey, call.grant.caller) // whose key the surface's request had
		return
	}
	key, ok := bearer(c.GetHeader("Authorization"))
	if !ok {
		s.refuse(c, access.BadKey())
		return
	}
	caller, err := s.keys.find(c.Request.Context(), key)
	if problem.Is(err, problem.Unauthorized) {
		s.refuseKey(c, err)
		return
	}
	if err != nil {
		s.refuse(c, err)
		return
	}
	c.Request = c.Request.WithContext(change.WithCaller(c.Request.Context(), caller))
	c.Set(callerKey, caller)
}

// checkScope comes after the rate limit, whose headers every authenticated
// answer carries.
func (s *server) checkScope(c *gin.Context) {
	caller, _ := callerOf(c)
	if s.operation(c).scope != "read" && !caller.CanWrite() {
		s.refuse(c, ReadsOnly())
	}
}

// ReadsOnly is the problem of a key that may not write.
func ReadsOnly() *problem.Error {
	return problem.New(problem.ScopeInsufficient, "The API key lacks the scope read:write.").With("required", "read:write")
}

// bearer takes the credential out of the header. The scheme's name has no case
// (RFC 9110, section 11.1).
func bearer(header string) (string, bool) {
	scheme, key, ok := strings.Cut(header, " ")
	key = strings.TrimSpace(key)
	return key, ok && strings.EqualFold(scheme, "Bearer") && key != ""
}

const callerKey = "caller"

func callerOf(c *gin.Context) (*change.Caller, bool) {
	v, ok := c.Get(callerKey)
	if !ok {
		return nil, false
	}
	return v.(*change.Caller), true
}
