package widget

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/widgetsecret"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/store"
)

// resealPage is how many secrets a rotation of the sealing key reads at once.
const resealPage = 100

// ResealSecrets seals anew, with the first key, every secret that isn't sealed with it, of all
// organizations. It may end at any moment and be run again.
func (s *Service) ResealSecrets(ctx context.Context) (seal.Resealed[publicid.WidgetSecret], error) {
	ctx = store.System(ctx, "the operator rotates the sealing keys")
	return seal.ResealAll(func(last publicid.WidgetSecret) ([]*db.WidgetSecret, error) {
		rows, err := s.store.Client().WidgetSecret.Query().Where(widgetsecret.IDGT(last)).
			Order(db.Asc(widgetsecret.FieldID)).Limit(resealPage).All(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "read the secrets of widgets")
		}
		return rows, nil
	}, func(row *db.WidgetSecret) publicid.WidgetSecret { return row.ID }, func(row *db.WidgetSecret) (int, bool, error) {
		if s.secrets.Current(row.SecretSealed) {
			return 0, true, nil
		}
		secret, err := s.secrets.Open(row.ID.String(), row.SecretSealed)
		if err != nil {
			return 0, false, nil //nolint:nilerr // the caller is told which
		}
		n, err := s.store.Client().WidgetSecret.Update().Where(widgetsecret.ID(row.ID)).
			SetSecretSealed(s.secrets.Seal(row.ID.String(), secret)).Save(ctx)
		if err != nil {
			return 0, true, errors.Wrap(err, "seal a secret of a widget anew")
		}
		return n, true, nil // none where it was deleted meanwhile
	})
}
