package widget

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/widgetsecret"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// resealPage is how many secrets a rotation of the sealing key reads at once.
const resealPage = 100

// Resealed tells what became of the secrets that weren't sealed with the first key.
type Resealed struct {
	Done int
	// Unreadable are those whose key isn't known, or that are damaged.
	Unreadable []publicid.WidgetSecret
}

// ResealSecrets seals anew, with the first key, every secret that isn't sealed with it, of all
// organizations. It may end at any moment and be run again.
func (s *Service) ResealSecrets(ctx context.Context) (Resealed, error) {
	ctx = store.System(ctx, "the operator rotates the sealing keys")
	var r Resealed
	for last := (publicid.WidgetSecret{}); ; {
		rows, err := s.store.Client().WidgetSecret.Query().Where(widgetsecret.IDGT(last)).
			Order(db.Asc(widgetsecret.FieldID)).Limit(resealPage).All(ctx)
		if err != nil {
			return r, errors.Wrap(err, "read the secrets of widgets")
		}
		if len(rows) == 0 {
			return r, nil
		}
		for _, row := range rows {
			if err := s.reseal(ctx, row, &r); err != nil {
				return r, err
			}
		}
		last = rows[len(rows)-1].ID
	}
}

func (s *Service) reseal(ctx context.Context, row *db.WidgetSecret, r *Resealed) error {
	if s.secrets.Current(row.SecretSealed) {
		return nil
	}
	secret, err := s.secrets.Open(row.ID.String(), row.SecretSealed)
	if err != nil {
		r.Unreadable = append(r.Unreadable, row.ID)
		return nil
	}
	n, err := s.store.Client().WidgetSecret.Update().Where(widgetsecret.ID(row.ID)).
		SetSecretSealed(s.secrets.Seal(row.ID.String(), secret)).Save(ctx)
	if err != nil {
		return errors.Wrap(err, "seal a secret of a widget anew")
	}
	r.Done += n // none where it was deleted meanwhile
	return nil
}
