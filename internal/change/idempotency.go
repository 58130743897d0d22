package change

import (
	"context"
	"encoding/hex"

	"github.com/go-faster/errors"
	"go.opentelemetry.io/otel/trace"

	"earshot/ent/db"
	"earshot/internal/problem"
	"earshot/internal/store"
	"earshot/internal/telemetry"
)

// A request with an idempotency key changes something once. What it answers is written with
// its change, so the answer has to be there before the commit: a change that is made alone is
// held open until Commit has it, and one that is made in a group is answered by the function
// that AnsweredBy names.

// Answer is what a caller is answered.
type Answer struct {
	Status int
	Body   []byte
}

// ReplayedError is what a change ends with that was made before: its answer then.
type ReplayedError struct{ Answer }

func (*ReplayedError) Error() string { return "the change was made before" }

// Idempotent is a request with an idempotency key.
type Idempotent struct {
	key    store.IdempotencyKey
	runner *Runner
	// answered is a func(*Out) (Answer, error) of the group that makes the change.
	answered any
	held     *held
}

// held is a change that waits for its answer.
type held struct {
	// ctx has the span of the commit.
	ctx     context.Context
	change  *Change
	tx      *store.HeldTx
	release func()
}

// end gives back what it has.
func (h *held) end() {
	trace.SpanFromContext(h.ctx).End()
	h.release()
}

type idempotentKey struct{}

// WithIdempotencyKey has what is changed with the context be changed once. Id is a hash of the
// key and of what it is scoped to, fingerprint one of what is asked for. Whoever calls it calls
// Commit with the answer, or Abandon.
func WithIdempotencyKey(ctx context.Context, id, fingerprint [32]byte) (context.Context, *Idempotent) {
	i := &Idempotent{key: store.IdempotencyKey{ID: id, Fingerprint: fingerprint}}
	return context.WithValue(ctx, idempotentKey{}, i), i
}

func idempotentOf(ctx context.Context) *Idempotent {
	i, _ := ctx.Value(idempotentKey{}).(*Idempotent)
	return i
}

// AnsweredBy tells a group how its result is answered, for a request with a key. Without one it
// does nothing.
func AnsweredBy[Out any](ctx context.Context, answer func(*Out) (Answer, error)) {
	if i := idempotentOf(ctx); i != nil {
		i.answered = answer
	}
}

// Commit commits what the request has changed, with its answer. There is nothing to do where
// it has changed nothing, or a group has committed it.
func (i *Idempotent) Commit(ctx context.Context, answer Answer) error {
	h := i.held
	if h == nil {
		return nil
	}
	kept := i.runner.keptAnswer(i.key, answer)
	i.held = nil
	defer h.end()
	err := h.tx.Commit(ctx, kept)
	if err != nil && !store.Unknown(err) {
		return err
	}
	i.runner.dispatchOf(h.ctx, h.change)
	return err
}

// Abandon undoes what isn't committed.
func (i *Idempotent) Abandon() {
	if h := i.held; h != nil {
		i.held = nil
		h.tx.Rollback()
		h.end()
	}
}

// hold makes the change of a request with a key, up to its commit, and takes over release
// where it succeeds.
func (r *Runner) hold(ctx context.Context, i *Idempotent, c *Change, release func(), fn func(c *Change) error) error {
	if i.held != nil {
		return errors.New("a request with an idempotency key makes two changes")
	}
	ctx, span := telemetry.Span(ctx, "commit")
	defer func() {
		if i.held == nil {
			span.End()
		}
	}()
	tx, err := r.store.Hold(ctx, c.Caller.Organization.ID, i.key, func(tx *db.Tx) error {
		*c = Change{Tx: tx, Caller: c.Caller, settings: r.settings}
		return c.make(ctx, fn)
	})
	if err != nil {
		return r.taken(i.key, err)
	}
	i.runner, i.held = r, &held{ctx, c, tx, release}
	return nil
}

// taken says what it means to a request that its key can't be used; other errors stay as they are.
func (r *Runner) taken(key store.IdempotencyKey, err error) error {
	var before *store.RecordedError
	switch {
	case errors.Is(err, store.ErrKeyInUse):
		return problem.New(problem.IdempotencyInProgress, "Another request with this Idempotency-Key is under way; ask again.")
	case !errors.As(err, &before):
		return err
	case [32]byte(before.Fingerprint) != key.Fingerprint:
		return problem.New(problem.IdempotencyMismatch, "This Idempotency-Key was used for a request with another body.")
	}
	body, openErr := r.secrets.OpenApart(hex.EncodeToString(before.ID), before.Answer)
	if openErr != nil {
		return errors.Wrap(openErr, "open the answer of a request")
	}
	return &ReplayedError{Answer{before.Status, []byte(body)}}
}

// keptAnswer encrypts an answer for its record, because some answers hold a secret that is shown once.
// An erasure finds the record by the subjects that stand beside it in clear.
func (r *Runner) keptAnswer(key store.IdempotencyKey, a Answer) store.KeptAnswer {
	return store.KeptAnswer{
		Key: key, Status: a.Status, Subjects: subjectsOf(a.Body),
		Answer: r.secrets.SealApart(hex.EncodeToString(key.ID[:]), string(a.Body)),
	}
}
