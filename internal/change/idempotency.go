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

// A request with an idempotency key takes effect once. Its answer is stored in the transaction of
// its change, so the answer must exist before the commit. A change that runs alone stays open until
// Commit has the answer. A change in a group is answered by the function of AnsweredBy.

// Answer is the response to a request.
type Answer struct {
	Status int
	Body   []byte
}

// ReplayedError reports that an earlier request with the same key made the change. It has the
// earlier answer.
type ReplayedError struct{ Answer }

func (*ReplayedError) Error() string { return "the change was made before" }

// Idempotent is a request with an idempotency key.
type Idempotent struct {
	key    store.IdempotencyKey
	runner *Runner
	held   *held
}

// held is a change whose transaction stays open until it has its answer.
type held struct {
	// ctx has the commit's span.
	ctx     context.Context
	change  *Change
	tx      *store.HeldTx
	release func()
}

// end ends the span and releases the transaction slot.
func (h *held) end() {
	trace.SpanFromContext(h.ctx).End()
	h.release()
}

type idempotentKey struct{}

// WithIdempotencyKey makes changes in the context take effect once. Id is a hash of the key and its
// scope. Fingerprint is a hash of the request. The caller must call Commit with the answer, or
// Abandon.
func WithIdempotencyKey(ctx context.Context, id, fingerprint [32]byte) (context.Context, *Idempotent) {
	i := &Idempotent{key: store.IdempotencyKey{ID: id, Fingerprint: fingerprint}}
	return context.WithValue(ctx, idempotentKey{}, i), i
}

func idempotentOf(ctx context.Context) *Idempotent {
	i, _ := ctx.Value(idempotentKey{}).(*Idempotent)
	return i
}

// Commit commits the request's change with its answer. It does nothing if the request changed
// nothing or a group has already committed it.
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
	touchDeliveries(h.ctx, h.change.deliveries)
	return err
}

// Abandon rolls back a change that is not committed.
func (i *Idempotent) Abandon() {
	if h := i.held; h != nil {
		i.held = nil
		h.tx.Rollback()
		h.end()
	}
}

// hold runs the change of a request with an idempotency key up to its commit. If it succeeds, it
// takes over release.
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
		*c = Change{Tx: tx, Caller: c.Caller, Waits: true, settings: r.settings}
		return c.make(ctx, fn)
	})
	if err != nil {
		return r.taken(i.key, err)
	}
	i.runner, i.held = r, &held{ctx, c, tx, release}
	return nil
}

// taken translates the errors of a key that cannot be used, and opens the stored answer of an
// earlier request. It returns other errors unchanged.
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

// keptAnswer encrypts an answer for its record, because some answers contain a secret that is shown
// once. An erasure finds the record by its subjects, which are stored in clear.
func (r *Runner) keptAnswer(key store.IdempotencyKey, a Answer) store.KeptAnswer {
	return store.KeptAnswer{
		Key: key, Status: a.Status, Subjects: subjectsOf(a.Body),
		Answer: r.secrets.SealApart(hex.EncodeToString(key.ID[:]), string(a.Body)),
	}
}
