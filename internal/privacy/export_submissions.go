package privacy

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"earshot/ent/db"
	"earshot/ent/db/subjectrecord"
	"earshot/ent/db/submission"
	"earshot/internal/publicid"
)

// submissionRecord is the record of a submission that waits for moderation.
type submissionRecord struct {
	ID        publicid.Submission `json:"id"`
	Kind      submission.Kind     `json:"kind"`
	BoardID   publicid.Board      `json:"boardId"`
	PostID    *publicid.Post      `json:"postId"`
	Title     string              `json:"title"`
	Body      body                `json:"body"`
	CreatedAt time.Time           `json:"createdAt"`
}

func (t *step) exportSubmissions(ctx context.Context) error {
	of, err := t.person(ctx)
	if of == nil {
		return err
	}
	if of.EmailHash == nil {
		t.next(stageEvents)
		return nil
	}
	rows, err := t.Submission.Query().
		Where(submission.EmailHash(*of.EmailHash), submission.IDGT(publicid.Of[publicid.Submission](t.position()))).
		Order(db.Asc(submission.FieldID)).Limit(rowsPage).All(ctx)
	if err != nil {
		return errors.Wrap(err, "read what waits of the person")
	}
	for _, w := range rows {
		err := t.keep(ctx, subjectrecord.KindSubmission, w.ID.UUID(), submissionRecord{
			w.ID, w.Kind, w.BoardID, w.PostID, w.Title, body{Text: w.BodyText}, w.CreatedAt,
		})
		if err != nil {
			return err
		}
	}
	t.nextAfter(len(rows), func() uuid.UUID { return rows[len(rows)-1].ID.UUID() }, stageEvents)
	return nil
}
