package contacts

import (
	"context"

	"github.com/google/uuid"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/ent/db/predicate"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

func wholeContact(c *ListedContact) *db.Contact { return &c.Contact }

func (s *Service) largeContacts(
	ctx context.Context, list string, memory *page.Reservation, place func(*ListedContact) []string,
) page.LargeRows[publicid.Contact, *ListedContact] {
	return page.LargeRows[publicid.Contact, *ListedContact]{
		List: list, Memory: memory, Place: place, ID: func(c *ListedContact) publicid.Contact { return c.ID },
		Load: func(ids ...publicid.Contact) ([]*ListedContact, error) {
			return contactPages.Read(ctx, s.store, page.Selection[predicate.Contact]{
				Where: []predicate.Contact{contact.IDIn(ids...)}, Order: page.Descending(contact.Table, contact.FieldID),
				Limit: len(ids), Most: page.All,
			})
		},
		Size: func(c *ListedContact) int { return page.JSONSize(c.Metadata) },
	}
}

// changed lists the contacts in the order of their changes.
func (s *Service) changed(ctx context.Context, bad *problem.Fields, in ContactQuery, limit int) (page.Page[*db.Contact], error) {
	at := in.SyncPlace(bad, in.list())
	if err := bad.Err(); err != nil {
		return page.Page[*db.Contact]{}, err
	}
	where := in.filters()
	found, err := page.Changed[publicid.Contact, *ListedContact, predicate.Contact]{
		LargeRows: s.largeContacts(ctx, in.list(), in.Memory, nil),
		Store:     s.store, Deletions: page.DeletedContacts,
		In:      func(c *ListedContact) int64 { return c.ChangedIn },
		Deleted: func(id uuid.UUID) string { return publicid.Of[publicid.Contact](id).String() },
		Rows: func(limit int, within predicate.Contact) ([]*ListedContact, error) {
			return contactPages.Read(ctx, s.store, page.Selection[predicate.Contact]{
				Where: append(where, within), Order: page.ByChange(contact.Table), Limit: limit, Most: page.FirstRead,
			})
		},
	}.Page(ctx, at, limit, in.Sync)
	return page.Each(found, wholeContact), err
}
