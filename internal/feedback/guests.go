package feedback

import (
	"context"
	"slices"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/predicate"
	"earshot/ent/db/user"
	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// guest is the user that a contact is as an author: one for the contact, or for its address.
func guest(ctx context.Context, c *change.Change, of *db.Contact) (*db.User, error) {
	if found, err := findGuest(ctx, c, of); found != nil || err != nil {
		return found, err
	}
	if err := store.InsertGuest(ctx, c.Tx, publicid.NewUser(), of); err != nil {
		return nil, err
	}
	// Its own, or the one that another comment of the same person has just made.
	found, err := findGuest(ctx, c, of)
	if found == nil && err == nil {
		return nil, errors.New("a guest that was inserted isn't there")
	}
	return found, err
}

// findGuest returns nil where there is none.
func findGuest(ctx context.Context, c *change.Change, of *db.Contact) (*db.User, error) {
	person := []predicate.User{user.ContactID(of.ID)}
	if of.EmailHash != nil {
		person = append(person, user.EmailHash(*of.EmailHash))
	}
	found, err := c.User.Query().Where(user.KindEQ(user.KindGuest), user.Or(person...)).Order(db.Asc(user.FieldID)).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "look for the guest")
	}
	if len(found) == 0 {
		return nil, nil
	}
	own := slices.IndexFunc(found, func(u *db.User) bool { return *u.ContactID == of.ID })
	return found[max(own, 0)], nil
}
