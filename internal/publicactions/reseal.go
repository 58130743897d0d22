package publicactions

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/submission"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/seal"
)

// resealPage is the number of submissions that a rotation of the sealing key reads at once.
const resealPage = 100

// ResealSubmissions reseals the opted-in authors of submissions with the first key of the box, in all
// organizations. It may be interrupted and repeated. It skips pending interactions, because they
// expire within a day.
func ResealSubmissions(ctx context.Context, s *postgres.DB, secrets *seal.Box) (seal.Resealed[publicid.Submission], error) {
	ctx = s.Across("the operator rotates the sealing keys").Context(ctx)
	return seal.ResealAll(func(last publicid.Submission) ([]*db.Submission, error) {
		rows, err := s.Client().Submission.Query().Where(submission.IDGT(last), submission.PersonSealedNotNil()).
			Order(db.Asc(submission.FieldID)).Limit(resealPage).All(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "read who has opted in")
		}
		return rows, nil
	}, func(row *db.Submission) publicid.Submission { return row.ID }, func(row *db.Submission) (int, bool, error) {
		if secrets.Current(*row.PersonSealed) {
			return 0, true, nil
		}
		person, err := secrets.OpenApart(row.ID.String(), *row.PersonSealed)
		if err != nil {
			return 0, false, nil //nolint:nilerr // the caller is told which
		}
		n, err := s.Client().Submission.Update().Where(submission.ID(row.ID)).
			SetPersonSealed(secrets.SealApart(row.ID.String(), person)).Save(ctx)
		if err != nil {
			return 0, true, errors.Wrap(err, "seal anew who has opted in")
		}
		return n, true, nil // n is 0 if the submission was removed meanwhile
	})
}
