package change

import (
	"encoding/hex"

	"github.com/go-faster/errors"

	"earshot/internal/problem"
)

// A request with an idempotency key takes effect once. Its answer is stored in the transaction of
// its change, so the answer is encoded before the commit.

// Answer is the response to a request.
type Answer struct {
	Status int
	Body   []byte
}

// ReplayedError reports that an earlier request with the same key made the change. It has the
// earlier answer.
type ReplayedError struct{ Answer }

func (*ReplayedError) Error() string { return "the change was made before" }

// taken translates the errors of a key that cannot be used, and opens the stored answer of an
// earlier request. It returns other errors unchanged.
func (r *Runner) taken(key Key, err error) error {
	var before *recordedError
	switch {
	case errors.Is(err, errKeyInUse):
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
func (r *Runner) keptAnswer(key Key, a Answer) keptAnswer {
	return keptAnswer{
		Key: key, Status: a.Status, Subjects: subjectsOf(a.Body),
		Answer: r.secrets.SealApart(hex.EncodeToString(key.ID[:]), string(a.Body)),
	}
}
