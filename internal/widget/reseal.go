package widget

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/widgetsecret"
	"earshot/internal/publicid"
	"earshot/internal/seal"
)

// resealPage is the number of secrets that a rotation of the sealing key reads at a time.
const resealPage = 100

// ResealSecrets seals all secrets of all organizations with the first key, except those that
// already are. It can be interrupted at any point and run again.
func (s *Service) ResealSecrets(ctx context.Context) (seal.Resealed[publicid.WidgetSecret], error) {
	ctx = s.store.Across("the operator rotates the sealing keys").Context(ctx)
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
		return n, true, nil // none if it was deleted meanwhile
	})
}
