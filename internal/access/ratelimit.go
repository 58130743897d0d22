package access

import (
	"context"
	"sync"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/batch"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// RateLimits say whether an API key may make a request. A key's token bucket is in the
// database and that of all processes. Each takes leases of its tokens: a few ahead of
// the requests that will need them, so that most wait for nobody. Where the database
// doesn't answer in time, a process goes by what it knew last, and settles it later.
type RateLimits struct {
	standard int // requests a minute
	asks     *batch.Batcher[*tokens, store.TokenGrant]

	// It guards all that follows, and the moments are taken under it, so that no later
	// one comes before.
	mu   sync.Mutex
	keys map[publicid.APIKey]*tokens
}

const (
	// asksMax bounds a statement; keys that are asked for at once are rarely ten.
	asksMax = 500
	// askTimeout is some thousand times what a statement takes. It ends the statement,
	// and nobody's wait.
	askTimeout = 5 * time.Second
	// answerTime is how long a request waits for the database to tell of its tokens.
	answerTime = 100 * time.Millisecond
	// leaseTime is how long tokens may be kept before they are given back, and that
	// many seconds' worth of the limit is the largest lease.
	leaseTime = time.Second
	// leaseFrom is the least budget that leases are taken of: below it a second's worth
	// is less than a token.
	leaseFrom = 60
	// After it was empty a bucket isn't asked for before there is a token again. At a
	// large limit there soon is one, so not before emptyAtLeast: 50 statements a second are
	// enough for requests that are refused. And not later than after emptyAtMost: somebody
	// may have given tokens back.
	emptyAtLeast = 20 * time.Millisecond
	emptyAtMost  = time.Second
	// maxKeys bounds the memory: beyond, those are forgotten whose buckets are full.
	maxKeys = 10_000
)

// RateLimit is what became of a request, and what is left for others.
type RateLimit struct {
	// OK says that it may be made.
	OK bool
	// PerMinute is the limit, and Left what the bucket holds of it. Other processes may
	// have taken some since it was told.
	PerMinute int
	Left      float64
	At        time.Time
	// Alone says why it was decided without the database; nil where it wasn't.
	Alone error
}

var errNoAnswer = errors.Errorf("the database didn't answer within %v", answerTime)

// RateLimits makes those of a process. A key without a limit of its own has the
// standard one, in requests a minute.
func (s *Service) RateLimits(standard int) *RateLimits {
	l := &RateLimits{standard: standard, keys: map[publicid.APIKey]*tokens{}}
	l.asks = batch.New(asksMax, askTimeout, func(ctx context.Context, keys []*tokens) ([]store.TokenGrant, error) {
		return s.store.TakeTokens(ctx, l.write(keys))
	})
	return l
}

// Take takes a token for a request of the key, if there is one.
func (l *RateLimits) Take(key publicid.APIKey, own *int) RateLimit {
	began := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.of(key, own)
	for {
		now := time.Now()
		if ok, known := t.take(now); known {
			if ok && t.low(now) {
				l.ask(t, now)
			}
			return t.tell(ok, now)
		}
		if err := l.await(t, l.ask(t, now), began); err != nil {
			return t.decideAlone(time.Now(), err)
		}
	}
}

// of finds the tokens of a key, whose limit may have changed.
func (l *RateLimits) of(key publicid.APIKey, own *int) *tokens {
	perMinute := l.standard
	if own != nil {
		perMinute = *own
	}
	t := l.keys[key]
	if t == nil {
		if len(l.keys) >= maxKeys {
			l.forgetFull()
		}
		t = &tokens{key: key, perMinute: perMinute}
		l.keys[key] = t
	}
	if t.perMinute != perMinute {
		t.perMinute, t.emptyUntil = perMinute, time.Time{}
	}
	return t
}

// forgetFull drops what is known of full buckets: who knows nothing takes them for full.
func (l *RateLimits) forgetFull() {
	now := time.Now()
	for key, t := range l.keys {
		if t.ask == nil && t.waiting == 0 && t.left(now) >= float64(t.perMinute) {
			delete(l.keys, key)
		}
	}
}

// ask returns the ask for the key's tokens that is under way, or begins one.
func (l *RateLimits) ask(t *tokens, now time.Time) *ask {
	if t.ask == nil {
		t.ask = &ask{began: now, done: make(chan struct{})}
		go l.send(t)
	}
	return t.ask
}

// send has an ask made together with those for other keys, one statement at a time.
func (l *RateLimits) send(t *tokens) {
	grant, err := l.asks.Do(context.Background(), t)
	l.mu.Lock()
	defer l.mu.Unlock()
	t.answered(grant, err, time.Now())
}

// write writes down what to ask for, when it is about to go.
func (l *RateLimits) write(keys []*tokens) []store.TokenAsk {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	asks := make([]store.TokenAsk, len(keys))
	for i, t := range keys {
		asks[i] = t.write(now)
	}
	return asks
}

// await waits for an ask, until the request that began then, or the ask, has waited long
// enough: while the database stands still, only the first requests wait for it. It
// returns why there is no answer, and doesn't hold the lock meanwhile.
func (l *RateLimits) await(t *tokens, a *ask, began time.Time) error {
	if a.began.Before(began) {
		began = a.began
	}
	t.waiting++
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		t.waiting--
	}()
	enough := time.NewTimer(time.Until(began.Add(answerTime)))
	defer enough.Stop()
	select {
	case <-a.done:
		return a.err
	case <-enough.C:
		return errNoAnswer
	}
}
