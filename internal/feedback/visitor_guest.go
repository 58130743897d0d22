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
)

// guestTries bounds the retries of a race. Losing it once takes two changes of another contact.
const guestTries = 10

// guest returns the user that represents a contact as an author. This is the contact's own guest
// user, or the guest user of its address. A trigger keeps that user's address equal to the contact's.
func guest(ctx context.Context, c *change.Change, of *db.Contact) (*db.User, error) {
	return guestOf(ctx, c, &of.ID, contactsHash(of))
}

// guestOf is guest for a person who may have only an address hash and no contact.
func guestOf(ctx context.Context, c *change.Change, contact *publicid.Contact, hash *[]byte) (*db.User, error) {
	for range guestTries {
		if found, err := findGuest(ctx, c, contact, hash); found != nil || err != nil {
			return found, err
		}
		// If another contact's guest has just got the address, nothing is inserted. That guest may
		// lose the address again before the next read, if its contact's address changes once more.
		if err := insertGuest(ctx, c.Tx, publicid.NewUser(), contact, hash); err != nil {
			return nil, err
		}
	}
	return nil, errors.Errorf("a guest of the address came and went %d times", guestTries)
}

// findGuest returns nil if there is no guest.
func findGuest(ctx context.Context, c *change.Change, contact *publicid.Contact, hash *[]byte) (*db.User, error) {
	var person []predicate.User
	if contact != nil {
		person = append(person, user.ContactID(*contact))
	}
	if hash != nil {
		person = append(person, user.EmailHash(*hash))
	}
	found, err := c.User.Query().Where(user.KindEQ(user.KindGuest), user.Or(person...)).Order(db.Asc(user.FieldID)).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "look for the guest")
	}
	if len(found) == 0 {
		return nil, nil
	}
	own := slices.IndexFunc(found, func(u *db.User) bool { return contact != nil && change.Same(u.ContactID, contact) })
	return found[max(own, 0)], nil
}
