package contacts

import (
	"context"
	"maps"
	"slices"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/ent/db/predicate"
	"earshot/internal/change"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/problem"
)

// maxUpsertMetadata limits the metadata of a batch, stored and new. The events of all items and the
// answer are in memory until the commit.
const maxUpsertMetadata = 4 << 20

// UpsertContacts makes the contact of each item as CreateContact does, or overwrites its traits as
// UpdateContact does, in the order of the items. An item with an error changes nothing, and does not
// affect the others.
//
// All items share one transaction, because an idempotency key covers one. If UpsertContacts returns
// an error, no item has taken effect.
func (s *Service) UpsertContacts(
	ctx context.Context, in []Identification, memory *page.Reservation, q change.Request[[]Identified],
) ([]Identified, error) {
	checked := make([]Identified, len(in))
	for i := range in {
		checked[i].Err = in[i].check()
	}
	if err := s.reserveUpsert(ctx, in, checked, memory); err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) ([]Identified, error) {
		// The transaction may run several times, so each run starts from the same results.
		u := &upsert{Service: s, c: c, in: in, out: slices.Clone(checked), contacts: map[string]*db.Contact{}, made: map[string]bool{}}
		return u.out, u.run(ctx)
	})
}

// reserveUpsert reserves memory for the batch, before it holds locks. It refuses the items behind
// maxUpsertMetadata.
func (s *Service) reserveUpsert(ctx context.Context, in []Identification, checked []Identified, memory *page.Reservation) error {
	ids := externalIDs(in, checked)
	found, err := contactPages.Read(ctx, s.store, page.Selection[predicate.Contact]{
		Where: []predicate.Contact{contact.ExternalUserIDIn(ids...)}, Order: page.Descending(contact.Table, contact.FieldID), Limit: len(ids),
	})
	if err != nil {
		return errors.Wrap(err, "measure the contacts")
	}
	sizes, total := map[string]int{}, 0
	for _, c := range found {
		sizes[*c.ExternalUserID] = c.Read().Bytes
	}
	for i := range in {
		id, next := in[i].ExternalUserID, in[i].Traits.Metadata
		switch {
		case checked[i].Err != nil:
			continue
		case total > maxUpsertMetadata:
			checked[i].Err = problem.New(problem.PayloadTooLarge,
				"The items before this one come to 4 MiB of stored and new metadata; send it in another batch.")
			continue
		}
		if total += sizes[id]; next != nil {
			sizes[id] = len(next)
			total += len(next)
		}
	}
	// The rows, the events with both sides of a change, and the answer that is kept for its
	// idempotency key.
	return memory.Reserve(ctx, 3*total)
}

// externalIDs returns the ids of the items without an error, each once.
func externalIDs(in []Identification, out []Identified) []string {
	ids := map[string]bool{}
	for i := range in {
		if out[i].Err == nil {
			ids[in[i].ExternalUserID] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// upsert is a batch in its transaction.
type upsert struct {
	*Service
	c   *change.Change
	in  []Identification
	out []Identified
	// contacts are the locked and the new contacts by their external ids.
	contacts map[string]*db.Contact
	// made has the new contacts whose event is not recorded yet.
	made map[string]bool
}

// run takes all locks in the order of internal/change/README.md and inserts new contacts. It then
// makes the results in the order of the items.
func (u *upsert) run(ctx context.Context) error {
	limit, count, err := u.lockAndCount(ctx, u.c)
	if err != nil {
		return err
	}
	if err := u.lock(ctx); err != nil {
		return err
	}
	if err := u.insert(ctx, limit, count); err != nil {
		return err
	}
	if err := u.copyRevenues(ctx); err != nil {
		return err
	}
	for i := range u.in {
		if u.out[i].Err != nil {
			continue
		}
		if err := u.finish(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// lock loads and locks the existing contacts in the order of their ids.
func (u *upsert) lock(ctx context.Context) error {
	found, err := u.c.Contact.Query().Where(contact.ExternalUserIDIn(externalIDs(u.in, u.out)...)).
		Order(db.Asc(contact.FieldID)).ForUpdate().All(ctx)
	if err != nil {
		return errors.Wrap(err, "lock the contacts")
	}
	for _, c := range found {
		u.contacts[*c.ExternalUserID] = c
	}
	return nil
}

// insert inserts the contacts that do not exist. The first ones in the order of the items get the
// room that the plan's cap leaves.
func (u *upsert) insert(ctx context.Context, limit, count int) error {
	first := map[string]int{}
	for i := range u.in {
		id := u.in[i].ExternalUserID
		_, again := first[id]
		if u.out[i].Err != nil || u.contacts[id] != nil || again {
			continue
		}
		if now := count + len(first); limit > 0 && now >= limit {
			u.out[i].Err = problem.OverPlan("contact", limit, now)
			continue
		}
		first[id] = i
	}
	// Concurrent inserts of the same contacts wait for each other. The fixed order prevents deadlocks.
	for _, id := range slices.Sorted(maps.Keys(first)) {
		made, err := u.insertRow(ctx, u.c, newCreated(&id, u.in[first[id]].Traits))
		if err != nil {
			return err
		}
		if made == nil {
			return postgres.ErrAgain // another request inserted the contact meanwhile, and it must be locked in its place
		}
		u.contacts[id], u.made[id] = made, true
	}
	return nil
}

// copyRevenues copies the changed revenue of all contacts to their votes in one statement. It thereby
// locks the revenues of posts in a fixed order. Single updates would lock them in the order of
// the contacts, and two batches would deadlock.
func (u *upsert) copyRevenues(ctx context.Context) error {
	next := map[string]map[string]any{}
	for i := range u.in {
		id, told := u.in[i].ExternalUserID, u.in[i].Traits
		if u.out[i].Err != nil || u.made[id] || !told.MRRCents.IsSpecified() {
			continue
		}
		cents, currency := change.Value(told.MRRCents), change.Value(told.Currency)
		old := u.contacts[id]
		if delete(next, id); !change.Same(cents, old.MrrCents) || !change.Same(currency, old.Currency) {
			next[id] = map[string]any{contact.FieldID: old.ID.UUID(), contact.FieldMrrCents: cents, contact.FieldCurrency: currency}
		}
	}
	if len(next) == 0 {
		return nil
	}
	return copyRevenues(ctx, u.c.Tx, slices.Collect(maps.Values(next)))
}

// finish updates the contact of an item, or reports the one that was inserted for it.
func (u *upsert) finish(ctx context.Context, i int) error {
	id := u.in[i].ExternalUserID
	found := u.contacts[id]
	if u.made[id] {
		delete(u.made, id)
		u.out[i] = Identified{Contact: found, Created: true}
		u.c.Audit("upsertContacts", found.ID)
		return recordCreated(u.c, found)
	}
	found, err := u.updateLocked(ctx, u.c, "upsertContacts", found, ContactInput{Traits: u.in[i].Traits})
	if err != nil {
		return err
	}
	u.contacts[id], u.out[i].Contact = found, found
	return nil
}
