package widget

import (
	"context"
	"crypto/rand"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/widgetsecret"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

const (
	secretPrefix = "wgsec_"
	// With two secrets, one can replace the other without a gap.
	maxSecrets = 2
)

// newSecret returns a secret of at least 256 bits, the size of the signatures' hash.
func newSecret() string { return secretPrefix + rand.Text() + rand.Text() }

// MadeSecret is a new secret with its value, which is never shown again.
type MadeSecret struct {
	Secret *db.WidgetSecret
	Value  string
}

// CreateSecret makes a secret. A third secret is problem.Conflict. Only owners and admins may call it.
func (s *Service) CreateSecret(ctx context.Context, q change.Request[*MadeSecret]) (*MadeSecret, error) {
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*MadeSecret, error) {
		if err := access.LockForAdmin(ctx, c); err != nil {
			return nil, err
		}
		n, err := c.WidgetSecret.Query().Count(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "count the widget's secrets")
		}
		if n >= maxSecrets {
			return nil, problem.WidgetSecretLimit.Problem().
				With("resource", "widgetSecret").With("limit", maxSecrets).With("current", n)
		}
		id, value := publicid.NewWidgetSecret(), newSecret()
		made, err := c.WidgetSecret.Create().SetID(id).SetSecretSealed(s.secrets.Seal(id.String(), value)).Save(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "insert the widget's secret")
		}
		c.Audit("createWidgetSecret", id)
		return &MadeSecret{Secret: made, Value: value}, nil
	})
}

// Secrets lists the organization's secrets, oldest first, without their values.
func (s *Service) Secrets(ctx context.Context, q page.Query) (page.Page[*db.WidgetSecret], error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	list := page.ListOf("widgetSecrets")
	last := page.After[publicid.WidgetSecret](&bad, list, q)
	if err := bad.Err(); err != nil {
		return page.Page[*db.WidgetSecret]{}, err
	}
	query := s.store.Client().WidgetSecret.Query().Order(db.Asc(widgetsecret.FieldID)).Limit(limit + 1)
	if last != nil {
		query.Where(widgetsecret.IDGT(*last))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return page.Page[*db.WidgetSecret]{}, errors.Wrap(err, "list the widget's secrets")
	}
	return page.Cut(list, rows, limit, page.ByID(func(w *db.WidgetSecret) string { return w.ID.String() })), nil
}

// DeleteSecret removes a secret. Every process refuses its tokens from then on. It works in every
// billing state, so that a leaked secret can be removed. Only owners and admins may call it.
func (s *Service) DeleteSecret(ctx context.Context, id publicid.WidgetSecret, q change.Request[*db.WidgetSecret]) error {
	_, err := change.RunUnpaid(ctx, s.changes, q, func(c *change.Change) (*db.WidgetSecret, error) {
		if err := access.LockForAdmin(ctx, c); err != nil {
			return nil, err
		}
		err := c.WidgetSecret.DeleteOneID(id).Exec(ctx)
		if db.IsNotFound(err) {
			return nil, problem.Missing("widget secret")
		}
		if err != nil {
			return nil, errors.Wrap(err, "delete the widget's secret")
		}
		c.Audit("deleteWidgetSecret", id)
		return &db.WidgetSecret{ID: id}, nil // the row was not loaded
	})
	return err
}

// secret returns the value of a secret of the organization in the context; "" if there is none.
func (s *Service) secret(ctx context.Context, id publicid.WidgetSecret) (string, error) {
	found, err := s.store.Client().WidgetSecret.Get(ctx, id)
	if db.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", errors.Wrap(err, "load the widget's secret")
	}
	opened, err := s.secrets.Open(id.String(), found.SecretSealed)
	if err != nil {
		return "", errors.Wrapf(err, "open %s", id)
	}
	return opened, nil
}
