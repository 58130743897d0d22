package contacts

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// wantedContact is a request to identify a contact.
type wantedContact struct {
	externalUserID string
	traits         Traits
}

// comesAlone reports whether a contact gets a transaction of its own: many large documents would not
// fit into memory.
func (w wantedContact) comesAlone() bool { return len(w.traits.Metadata) > maxPlainMetadata }

// identity is an identified contact.
type identity struct {
	*db.Contact
	created bool
}

// IdentifyContact inserts the contact with this external user id, or fills the unknown traits of an
// existing one (specification, Identify rules 1 to 7). Created is true for a new contact. It
// records contact.created, or contact.updated if a trait changed.
func (s *Service) IdentifyContact(ctx context.Context, externalUserID string, in Traits) (found *db.Contact, created bool, err error) {
	if err := checkIdentified(externalUserID, &in); err != nil {
		return nil, false, err
	}
	done, err := s.identities.Do(ctx, wantedContact{externalUserID, in}, change.Request[identity]{})
	return done.Contact, done.created, err
}

func checkIdentified(externalUserID string, in *Traits) error {
	var bad problem.Fields
	bad.Text("externalUserId", externalUserID, 1, maxExternalUserID)
	in.Check(&bad)
	return bad.Err()
}

// identifyOne is IdentifyContact without traits, in the caller's transaction. The contact stays
// locked.
func (s *Service) identifyOne(ctx context.Context, c *change.Change, externalUserID string) (*db.Contact, error) {
	done, err := s.identify(ctx, c, []wantedContact{{externalUserID: externalUserID}})
	if err != nil {
		return nil, err
	}
	if done[0].Err != nil {
		return nil, done[0].Err
	}
	for _, e := range done[0].Events {
		if err := c.Record(e.Type, e.Payload); err != nil {
			return nil, err
		}
	}
	return done[0].Out.Contact, nil
}

// identify identifies the contacts of one or more callers. A contact with large metadata has to come alone. Of
// several inputs that create or change one contact, the first is taken, and the others have to come alone.
func (s *Service) identify(ctx context.Context, c *change.Change, in []wantedContact) ([]change.Result[identity], error) {
	b := &identifyRun{Service: s, c: c, in: in, out: make([]change.Result[identity], len(in)), same: map[string][]int{}}
	for i, w := range in {
		b.same[w.externalUserID] = append(b.same[w.externalUserID], i)
	}
	// With a cap, the organization is locked before contacts. The first try assumes that no contact is new. A
	// batch that waits for contacts does not lock the organization, because then all new contacts would wait, too.
	if !c.Waits && c.Again {
		if err := b.count(ctx); err != nil {
			return nil, err
		}
	}
	known, absent, err := b.see(ctx)
	if err != nil {
		return nil, err
	}
	// Contacts are locked before their votes, and an upsert also inserts first.
	if err := b.insert(ctx, absent); err != nil {
		return nil, err
	}
	return b.out, b.fill(ctx, known)
}

// identifyRun is a run of identify.
type identifyRun struct {
	*Service
	c   *change.Change
	in  []wantedContact
	out []change.Result[identity]
	// same has the inputs by their external ids.
	same map[string][]int
	// limit is the plan's cap, and n the number of contacts, once the organization is locked.
	limit, n int
	counted  bool
}

// count locks the organization and counts its contacts, if the plan has a cap.
func (b *identifyRun) count(ctx context.Context) (err error) {
	b.limit, b.n, err = b.lockAndCount(ctx, b.c)
	b.counted = true
	return err
}

// alone reports whether there is one input, which may wait.
func (b *identifyRun) alone() bool { return len(b.in) == 1 && b.c.Waits }

// see finds and locks the contacts, and advances their lastSeenAt. It returns the locked ones, and the inputs
// without a contact in their order. Each locked contact is the result of at least one input.
func (b *identifyRun) see(ctx context.Context) (known []*FoundContact, absent []int, err error) {
	most := maxPlainMetadata
	if b.alone() {
		most = 0
	}
	found, err := SeeContacts(ctx, b.c.Tx, slices.Collect(maps.Keys(b.same)), postgres.Now(), most, !b.c.Waits)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range found {
		same := b.same[f.Wanted]
		switch {
		case f.Locked():
			known = append(known, f)
		case f.Known && !f.Large && !b.c.Waits:
			b.refuse(same, change.ErrHeld)
		case f.Known: // It is large, or it was deleted meanwhile.
			b.refuse(same, postgres.ErrAgain)
		default:
			absent = append(absent, same[0])
			b.refuse(same[1:], postgres.ErrAgain)
		}
	}
	slices.Sort(absent)
	return known, absent, nil
}

// refuse sets the error of inputs.
func (b *identifyRun) refuse(inputs []int, err error) {
	for _, i := range inputs {
		b.out[i].Err = err
	}
}

// fill sets unknown traits of locked contacts and never overwrites (Identify rule 2). If no trait
// changes, it writes and records nothing (rule 4).
func (b *identifyRun) fill(ctx context.Context, known []*FoundContact) error {
	learning := map[publicid.Contact]int{} // the input whose traits a contact takes
	var rows []map[string]any
	for _, old := range known {
		for _, i := range b.same[old.Wanted] {
			changes, err := learned(&old.Contact, &b.in[i].traits)
			if err != nil {
				return err
			}
			_, taken := learning[old.ID]
			switch {
			case len(changes) == 0:
				unchanged := old.Contact
				b.out[i].Out.Contact = &unchanged
			case taken:
				b.out[i].Err = postgres.ErrAgain
			default:
				learning[old.ID] = i
				b.out[i].Events = []change.Event{{Type: event.ContactUpdated, Payload: &event.ContactUpdatedPayload{Changes: changes}}}
				m := b.c.Contact.UpdateOne(&old.Contact).SetUpdatedAt(later(old.LastSeenAt, old.UpdatedAt)).Mutation()
				if err := b.putTraits(m, changes); err != nil {
					return err
				}
				rows = append(rows, Columns(old.ID.UUID(), m))
			}
		}
	}
	if len(rows) == 0 {
		return nil
	}
	filled, err := UpdateContacts(ctx, b.c.Tx, rows)
	if err != nil {
		return err
	}
	for _, next := range filled {
		out := &b.out[learning[next.ID]]
		out.Out.Contact = next
		out.Events[0].Payload.(*event.ContactUpdatedPayload).Contact = eventContact(next)
	}
	return nil
}

// insert inserts new contacts, the first ones as far as the plan's cap allows.
func (b *identifyRun) insert(ctx context.Context, absent []int) error {
	if len(absent) == 0 {
		return nil
	}
	if err := b.makeRoom(ctx, absent); err != nil {
		return err
	}
	var fresh []int
	for _, i := range absent {
		if now := b.n + len(fresh); b.limit > 0 && now >= b.limit {
			b.out[i].Err = problem.OverPlan("contact", b.limit, now)
		} else if b.out[i].Err == nil {
			fresh = append(fresh, i)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	// Concurrent inserts of the same contacts wait for each other. The fixed order prevents deadlocks.
	slices.SortFunc(fresh, func(i, k int) int { return strings.Compare(b.in[i].externalUserID, b.in[k].externalUserID) })
	rows := make([]*db.ContactCreate, len(fresh))
	for n, i := range fresh {
		rows[n] = b.c.Contact.Create()
		if err := b.fillRow(rows[n], publicid.NewContact(), newIdentified(b.in[i].externalUserID, b.in[i].traits)); err != nil {
			return err
		}
	}
	made, err := postgres.InsertWithCommit(ctx, b.c.Contact.CreateBulk, rows)
	if err != nil {
		return errors.Wrap(err, "insert the contacts")
	}
	for n, i := range fresh {
		b.out[i].Out = identity{made[n], true}
		b.out[i].Events = []change.Event{{
			Type: event.ContactCreated, At: made[n].CreatedAt, Payload: &event.ContactCreatedPayload{Contact: eventContact(made[n])},
		}}
	}
	return nil
}

// makeRoom counts the contacts under the organization's lock, unless they are counted. A batch that does not wait
// begins again for that. Of a batch that waits, the inputs have to come alone.
func (b *identifyRun) makeRoom(ctx context.Context, absent []int) error {
	if b.counted || b.capOf(b.c.Caller.Organization.Plan) == 0 {
		return nil
	}
	if !b.c.Waits {
		return postgres.ErrAgain
	}
	if !b.alone() {
		for _, i := range absent {
			b.out[i].Err = postgres.ErrAgain
		}
		return nil
	}
	// No contact is locked, so the organization may be.
	if err := b.count(ctx); err != nil {
		return err
	}
	// The cap does not apply to a contact that another transaction has inserted meanwhile.
	there, err := postgres.Exists(ctx, b.c.Contact.Query().Where(contact.ExternalUserID(b.in[0].externalUserID)))
	if err != nil {
		return errors.Wrap(err, "look for the contact")
	}
	if there {
		return postgres.ErrAgain
	}
	return nil
}

// newIdentified returns a contact that is identified for the first time.
func newIdentified(externalUserID string, in Traits) newContact {
	return newContact{externalUserID: &externalUserID, traits: in, source: "identify", consentBasis: "sdk_identify"}
}

// learned returns the changes of a contact by traits that identify tells of it.
func learned(old *db.Contact, in *Traits) (map[string]event.Change, error) {
	return mergeTraits(old, func(t trait) (any, bool, error) {
		told, _ := t.told(in)
		if told == nil {
			return nil, false, nil
		}
		next, err := t.filled(t.known(old), told)
		return next, true, err
	})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
