package feedback

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db/user"
	"earshot/internal/publicid"
)

// Author is the public information about an author.
type Author struct {
	// Name is a member's name. It is empty for guests, because they are customers and stay
	// anonymous, and for removed members.
	Name  string
	Guest bool
}

// Authors returns the authors with these ids, as far as they exist.
func (s *Service) Authors(ctx context.Context, of []publicid.User) (map[publicid.User]Author, error) {
	authors := make(map[publicid.User]Author, len(of))
	if len(of) == 0 {
		return authors, nil
	}
	found, err := s.store.Client().User.Query().Where(user.IDIn(of...)).
		Select(user.FieldID, user.FieldName, user.FieldRole, user.FieldKind).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "load the authors")
	}
	for _, u := range found {
		one := Author{Guest: u.Kind == user.KindGuest}
		if u.Role != nil && !one.Guest {
			one.Name = u.Name
		}
		authors[u.ID] = one
	}
	return authors, nil
}
