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

// wantedContact is a request to identify a contact. Known is true if the contact existed a moment ago.
type wantedContact struct {
	externalUserID string
	traits         Traits
	known          bool
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
	seen, err := s.seeAgain(ctx, externalUserID, in)
	if seen.contact != nil || err != nil {
		return seen.contact, false, err
	}
	done, err := s.identities.Do(ctx, wantedContact{externalUserID, in, seen.there}, change.Request[identity]{})
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

// identify identifies the contacts of one or more callers. A contact with large metadata, or twice in
// one batch, has to come alone.
func (s *Service) identify(ctx context.Context, c *change.Change, in []wantedContact) ([]change.Result[identity], error) {
	b := &identifyRun{Service: s, c: c, in: in, out: make([]change.Result[identity], len(in)), first: map[string]int{}}
	for i, w := range in {
		if _, twice := b.first[w.externalUserID]; twice {
			b.out[i].Err = postgres.ErrAgain
			continue
		}
		b.first[w.externalUserID] = i
	}
	// The organization is locked before contacts. A batch that waits for contacts does not lock it,
	// because then all new contacts would wait, too.
	isNew := func(w wantedContact) bool { return !w.known }
	if !c.Waits && slices.ContainsFunc(in, isNew) {
		if err := b.count(ctx); err != nil {
			return nil, err
		}
	}
	known, absent, err := b.lock(ctx)
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
	// first has the inputs by their external ids.
	first map[string]int
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

// lock finds and locks the contacts. It returns the locked ones, and the inputs without a contact in
// their order.
//
// The inputs of a batch that does not wait have been looked up. If none is known, the first try trusts
// that. If one is there all the same, for example because another transaction holds it, the insert fails,
// and the next try looks here. With a cap, each try looks: a contact that is there must not be refused.
func (b *identifyRun) lock(ctx context.Context) (known []*FoundContact, absent []int, err error) {
	isKnown := func(w wantedContact) bool { return w.known }
	if !b.c.Waits && !b.c.Again && b.capOf(b.c.Caller.Organization.Plan) == 0 && !slices.ContainsFunc(b.in, isKnown) {
		return nil, slices.Sorted(maps.Values(b.first)), nil
	}
	most := maxPlainMetadata
	if b.alone() {
		most = 0
	}
	found, err := LockContacts(ctx, b.c.Tx, slices.Collect(maps.Keys(b.first)), most, !b.c.Waits)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range found {
		i := b.first[f.Wanted]
		switch {
		case f.Locked():
			known = append(known, f)
		case f.There && !f.Large && !b.c.Waits:
			b.out[i].Err = change.ErrHeld
		case f.There: // It is large, or it was deleted meanwhile.
			b.out[i].Err = postgres.ErrAgain
		default:
			absent = append(absent, i)
		}
	}
	slices.Sort(absent)
	return known, absent, nil
}

// fill sets unknown traits of locked contacts and never overwrites (Identify rule 2). If nothing
// changes, only lastSeenAt advances and nothing is recorded (rule 4).
func (b *identifyRun) fill(ctx context.Context, known []*FoundContact) error {
	if len(known) == 0 {
		return nil
	}
	changes, rows := map[string]map[string]event.Change{}, make([]map[string]any, len(known))
	for n, old := range known {
		m := b.c.Contact.UpdateOne(&old.Contact).Mutation()
		changed, err := b.learn(m, &old.Contact, b.in[b.first[old.Wanted]].traits)
		if err != nil {
			return err
		}
		changes[old.Wanted], rows[n] = changed, Columns(old.ID.UUID(), m)
	}
	filled, err := UpdateContacts(ctx, b.c.Tx, rows)
	if err != nil {
		return err
	}
	for _, next := range filled {
		out := &b.out[b.first[*next.ExternalUserID]]
		out.Out.Contact = next
		if changed := changes[*next.ExternalUserID]; len(changed) > 0 {
			out.Events = []change.Event{{
				Type: event.ContactUpdated, Payload: &event.ContactUpdatedPayload{Contact: eventContact(next), Changes: changed},
			}}
		}
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

// makeRoom counts the contacts, unless they are counted. It refuses the inputs that have to come alone
// for that.
func (b *identifyRun) makeRoom(ctx context.Context, absent []int) error {
	if b.counted || b.capOf(b.c.Caller.Organization.Plan) == 0 {
		return nil
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

// learn sets the new values of a contact in a mutation, and returns the changes.
func (s *Service) learn(m *db.ContactMutation, old *db.Contact, in Traits) (map[string]event.Change, error) {
	changes, err := s.mergeTraits(m, old, func(t trait) (any, bool, error) {
		told, _ := t.told(&in)
		if told == nil {
			return nil, false, nil
		}
		next, err := t.filled(t.known(old), told)
		return next, true, err
	})
	if err != nil {
		return nil, err
	}
	// The clock of another process may be ahead: time only advances.
	seen := later(postgres.Now(), old.LastSeenAt)
	m.SetLastSeenAt(seen)
	if len(changes) > 0 {
		m.SetUpdatedAt(later(seen, old.UpdatedAt))
	}
	return changes, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sighting is the key of contacts that one statement can look up together. They have the same
// organization and the same set of columns in the request.
type sighting struct {
	organization publicid.Organization
	told         string
}

// seen is the result of a lookup. The flag there is true if the contact exists. The contact is set
// only if the request has no new trait for it, because identify is then complete.
type seen struct {
	contact *db.Contact
	there   bool
}

// seeAgain completes identify for an existing contact without new traits, which is the most
// frequent case.
func (s *Service) seeAgain(ctx context.Context, externalUserID string, in Traits) (seen, error) {
	caller := change.CallerOf(ctx)
	if err := change.MayWrite(caller); err != nil {
		return seen{}, err
	}
	of := sighting{caller.Organization.ID, in.columns()}
	return change.Join(ctx, func(ctx context.Context) (seen, error) { return s.sightings.DoOrNot(ctx, of, externalUserID) })
}

// columns returns the columns of the specified traits in a fixed order, so that there is one
// statement for each set of traits. It leaves out metadata without keys.
func (t *Traits) columns() string {
	told := t.told()
	if string(t.Metadata) == "{}" {
		delete(told, contact.FieldMetadata)
	}
	return strings.Join(slices.Sorted(maps.Keys(told)), " ")
}

// see is seeAgain for several contacts. A contact with more than most bytes of metadata counts as
// one with new traits. If most is 0, there is no such limit.
func (s *Service) see(ctx context.Context, of sighting, ids []string, most int) ([]seen, error) {
	release, err := s.store.AcquireTransaction(ctx, of.organization)
	if err != nil {
		return nil, err
	}
	defer release()
	found, incomplete, err := SeeContacts(postgres.WithOrganization(ctx, of.organization), s.store, ids, postgres.Now(), strings.Fields(of.told), most)
	if err != nil {
		return nil, err
	}
	byID := map[string]seen{}
	for _, c := range found {
		byID[*c.ExternalUserID] = seen{c, true}
	}
	for _, id := range incomplete {
		byID[id] = seen{there: true}
	}
	out := make([]seen, len(ids))
	for i, id := range ids {
		out[i] = byID[id]
	}
	return out, nil
}
