package subscribers

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/ent/db/subscription"
	"earshot/internal/contacts"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// Subscriber is a contact that may be e-mailed, with its choice of e-mails.
type Subscriber struct {
	Contact                              publicid.Contact
	StatusUpdates, Changelog, Suppressed bool
	// UpdatedAt is the time of the last choice, or of the contact's creation without one.
	UpdatedAt time.Time
}

// Subscribers lists the contacts that may be e-mailed in the organization of the context, with their
// choices, newest first. Suppressed marks contacts whose address gets no e-mail.
func (s *Service) Subscribers(ctx context.Context, q page.Query) (page.Page[Subscriber], error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	list := page.ListOf("subscribers")
	last := page.After[publicid.Contact](&bad, list, q)
	if err := bad.Err(); err != nil {
		return page.Page[Subscriber]{}, err
	}
	query := s.store.Lists().Contact.Query().Where(contact.EmailHashNotNil(), contacts.Mailable()).
		Order(db.Desc(contact.FieldID)).Limit(limit+1).Select(contact.FieldID, contact.FieldEmailHash, contact.FieldCreatedAt)
	if last != nil {
		query.Where(contact.IDLT(*last))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return page.Page[Subscriber]{}, errors.Wrap(err, "list subscribers")
	}
	found := page.Cut(list, rows, limit, page.ByID(func(c *db.Contact) string { return c.ID.String() }))
	describe, err := s.describer(ctx, found.Items)
	if err != nil {
		return page.Page[Subscriber]{}, err
	}
	return page.Each(found, describe), nil
}

// describer loads the choices and the suppressions of the contacts.
func (s *Service) describer(ctx context.Context, of []*db.Contact) (func(*db.Contact) Subscriber, error) {
	hashes := make([][]byte, len(of))
	for i, c := range of {
		hashes[i] = *c.EmailHash
	}
	chosen, err := s.store.Lists().Subscription.Query().Where(subscription.EmailHashIn(hashes...)).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "load what subscribers chose")
	}
	byHash := make(map[string]*db.Subscription, len(chosen))
	for _, c := range chosen {
		byHash[string(c.EmailHash)] = c
	}
	suppressed, err := suppressed(ctx, s.store, hashes)
	if err != nil {
		return nil, err
	}
	return func(c *db.Contact) Subscriber {
		standard := unchosen()
		one := Subscriber{c.ID, standard.StatusUpdates, standard.Changelog, suppressed[string(*c.EmailHash)], c.CreatedAt}
		if own := byHash[string(*c.EmailHash)]; own != nil {
			one.StatusUpdates, one.Changelog, one.UpdatedAt = own.StatusUpdates, own.Changelog, own.UpdatedAt
		}
		return one
	}, nil
}
