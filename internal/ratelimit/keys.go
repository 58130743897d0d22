// Package ratelimit has the token buckets of API keys, networks, addresses and e-mails. Those for
// single processes are in memory (Buckets). Those that all processes share are in the database. A
// process takes several tokens of a key at once (lease.go), so that most requests write nothing. The
// throttle of a webhook is in internal/delivery.
package ratelimit

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/batch"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// Keys decides whether an API key may make a request. Each key has a token bucket in the
// database, which all processes share. A process leases a few tokens ahead of the requests that
// will need them, so that most requests don't wait. If the database doesn't answer in time, the
// process decides with its last known state and settles the difference later.
type Keys struct {
	standard int // requests a minute
	take     func(context.Context, []TokenAsk) ([]TokenGrant, error)
	asks     batch.Batcher[*tokens, TokenGrant]

	// mu guards the fields below. Times are taken under it, so that they never decrease.
	mu   sync.Mutex
	keys map[publicid.APIKey]*tokens
}

const (
	// asksMax bounds one statement. Keys that are asked for at the same time are rarely more than
	// ten.
	asksMax = 500
	// askTimeout is about a thousand times the duration of a statement. It ends the statement, not
	// the wait of a request.
	askTimeout = 5 * time.Second
	// answerTime bounds the wait of a request for the database's answer.
	answerTime = 100 * time.Millisecond
	// leaseTime is the lifetime of leased tokens. The largest lease is the number of tokens that
	// the limit allows in this time.
	leaseTime = time.Second
	// leaseFrom is the smallest limit with leases. Below it, a second's share is less than a token.
	leaseFrom = 60
	// A process doesn't ask for an empty bucket again until it holds a token. At a large limit this
	// takes little time, so emptyAtLeast bounds refused requests to 50 statements a second. After
	// emptyAtMost the process asks again in any case, because another process may have returned
	// tokens.
	emptyAtLeast = 20 * time.Millisecond
	emptyAtMost  = time.Second
	// maxKeys bounds the memory. Beyond it, keys with full buckets are forgotten.
	maxKeys = 10_000
)

// Decision is the decision about a request and the remaining budget.
type Decision struct {
	// OK reports whether the request may be made.
	OK bool
	// PerMinute is the limit, and Left the number of tokens in the bucket. Other processes may have
	// taken some since the database's last answer.
	PerMinute int
	Left      float64
	At        time.Time
	// Alone is the reason for a decision without the database, or nil.
	Alone error
}

var errNoAnswer = errors.Errorf("the database didn't answer within %v", answerTime)

// NewKeys returns the rate limits of this process. A key without its own limit has the standard
// limit, in requests a minute.
func NewKeys(s *postgres.DB, standard int) *Keys {
	l := &Keys{standard: standard, keys: map[publicid.APIKey]*tokens{}}
	l.take = func(ctx context.Context, asks []TokenAsk) ([]TokenGrant, error) {
		return TakeTokens(ctx, s, asks)
	}
	l.asks = batch.New(asksMax, askTimeout, func(ctx context.Context, keys []*tokens) ([]TokenGrant, error) {
		return l.take(ctx, l.write(keys))
	})
	return l
}

// Take takes a token for a request of the key if one is available.
func (l *Keys) Take(key publicid.APIKey, own *int) Decision {
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

// of returns the tokens of a key and updates its limit.
func (l *Keys) of(key publicid.APIKey, own *int) *tokens {
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

// forgetFull drops the state of full buckets. A key without state is treated as full.
func (l *Keys) forgetFull() {
	now := time.Now()
	for key, t := range l.keys {
		if t.ask == nil && t.waiting == 0 && t.left(now) >= float64(t.perMinute) {
			delete(l.keys, key)
		}
	}
}

// ask returns the running ask for the key's tokens, or starts one.
func (l *Keys) ask(t *tokens, now time.Time) *ask {
	if t.ask == nil {
		t.ask = &ask{began: now, done: make(chan struct{})}
		go l.send(t)
	}
	return t.ask
}

// send adds the ask to a batch with those of other keys. One batch runs at a time.
func (l *Keys) send(t *tokens) {
	grant, err := l.asks.Do(context.Background(), t)
	l.mu.Lock()
	defer l.mu.Unlock()
	t.answered(grant, err, time.Now())
}

// GiveBack returns the leased tokens, so that they do not expire unused when the process stops. It also
// settles the owed ones. Call it after the last request.
func (l *Keys) GiveBack(ctx context.Context) error {
	for _, a := range l.running() {
		select {
		case <-a.done:
		case <-ctx.Done():
			return errors.Wrap(ctx.Err(), "wait for the last tokens")
		}
	}
	var asks []TokenAsk
	l.mu.Lock()
	for _, t := range l.keys {
		if owed := t.owed - t.leased; owed != 0 {
			asks = append(asks, TokenAsk{Key: t.key, PerMinute: t.perMinute, Owed: owed})
			t.owed, t.leased = 0, 0
		}
	}
	l.mu.Unlock()
	for some := range slices.Chunk(asks, asksMax) {
		if _, err := l.take(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (l *Keys) running() (all []*ask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.keys {
		if t.ask != nil {
			all = append(all, t.ask)
		}
	}
	return all
}

// write fills in the asks immediately before the statement runs.
func (l *Keys) write(keys []*tokens) []TokenAsk {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	asks := make([]TokenAsk, len(keys))
	for i, t := range keys {
		asks[i] = t.write(now)
	}
	return asks
}

// await waits for an ask and returns the reason if there is no answer. The wait ends answerTime
// after the start of the request or of the ask, whichever is earlier. So while the database is
// unavailable, only the first requests wait for it. await releases the lock while it waits.
func (l *Keys) await(t *tokens, a *ask, began time.Time) error {
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
