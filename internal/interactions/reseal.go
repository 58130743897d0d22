package interactions

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/submission"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/store"
)

// resealPage is how many submissions a rotation of the sealing key reads at once.
const resealPage = 100

// Resealed tells what became of the submissions that weren't sealed with the first key.
type Resealed struct {
	Done int
	// Unreadable are those whose key isn't known, or that are damaged.
	Unreadable []publicid.Submission
}

// ResealSubmissions seals anew, with the first key of the box, who has opted in to hear of what waits
// to be looked at, in all organizations. It may end at any moment and be run again. What waits for a
// link is over within a day and stays as it is.
func ResealSubmissions(ctx context.Context, s *store.Store, secrets *seal.Box) (Resealed, error) {
	ctx = store.System(ctx, "the operator rotates the sealing keys")
	var r Resealed
	for last := (publicid.Submission{}); ; {
		rows, err := s.Client().Submission.Query().Where(submission.IDGT(last), submission.PersonSealedNotNil()).
			Order(db.Asc(submission.FieldID)).Limit(resealPage).All(ctx)
		if err != nil {
			return r, errors.Wrap(err, "read who has opted in")
		}
		if len(rows) == 0 {
			return r, nil
		}
		for _, row := range rows {
			if err := r.reseal(ctx, s, secrets, row); err != nil {
				return r, err
			}
		}
		last = rows[len(rows)-1].ID
	}
}

func (r *Resealed) reseal(ctx context.Context, s *store.Store, secrets *seal.Box, row *db.Submission) error {
	if secrets.Current(*row.PersonSealed) {
		return nil
	}
	person, err := secrets.OpenApart(row.ID.String(), *row.PersonSealed)
	if err != nil {
		r.Unreadable = append(r.Unreadable, row.ID)
		return nil
	}
	n, err := s.Client().Submission.Update().Where(submission.ID(row.ID)).
		SetPersonSealed(secrets.SealApart(row.ID.String(), person)).Save(ctx)
	if err != nil {
		return errors.Wrap(err, "seal anew who has opted in")
	}
	r.Done += n // none where it waits no longer
	return nil
}
