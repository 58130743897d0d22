package contacts

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// identifyTries bounds the retries of a race. Losing it once takes two concurrent requests.
const identifyTries = 10

// IdentifyContact inserts the contact with this external user id, or fills the unknown traits of an
// existing one (specification, Identify rules 1 to 7). Created is true for a new contact. It
// records contact.created, or contact.updated if a trait changed.
func (s *Service) IdentifyContact(ctx context.Context, externalUserID string, in Traits) (found *db.Contact, created bool, err error) {
	if err := checkIdentified(externalUserID, &in); err != nil {
		return nil, false, err
	}
	found, created, err = s.identifyTogether(ctx, externalUserID, in)
	if found != nil || err != nil {
		return found, created, err
	}
	return s.identifyAlone(ctx, externalUserID, in)
}

func checkIdentified(externalUserID string, in *Traits) error {
	var bad problem.Fields
	bad.Text("externalUserId", externalUserID, 1, maxExternalUserID)
	in.Check(&bad)
	return bad.Err()
}

// identifyAlone runs identify in a transaction of its own. It handles every case.
func (s *Service) identifyAlone(ctx context.Context, externalUserID string, in Traits) (found *db.Contact, created bool, err error) {
	err = s.changes.Run(ctx, func(c *change.Change) (err error) {
		found, created, err = s.identify(ctx, c, externalUserID, in)
		return err
	})
	return found, created, err
}

// identify is IdentifyContact in the caller's transaction. The contact stays locked.
func (s *Service) identify(ctx context.Context, c *change.Change, externalUserID string, in Traits) (found *db.Contact, created bool, err error) {
	// Repeat if another request inserted the contact between the two reads, and a third one deleted
	// it.
	for range identifyTries {
		if found, err = byExternalID(ctx, c, externalUserID); err != nil {
			return nil, false, err
		}
		if found != nil {
			found, err = s.fill(ctx, c, found, in)
			return found, false, err
		}
		if found, err = s.insertIdentified(ctx, c, externalUserID, in); found != nil || err != nil {
			return found, found != nil, err
		}
	}
	return nil, false, errors.Errorf("the contact came and went %d times while it was identified", identifyTries)
}

// identifyTogether handles the frequent cases in shared transactions: an existing contact, and a
// new contact if there is no cap. In all other cases it returns nil and has changed nothing.
func (s *Service) identifyTogether(ctx context.Context, externalUserID string, in Traits) (found *db.Contact, created bool, err error) {
	of := change.CallerOf(ctx).Organization
	uncapped := s.capOf(of.Plan) == 0
	insertFirst := uncapped && s.imports.likely(of.ID)
	insert := func() error {
		found, err = s.newcomers.Do(ctx, newIdentified(externalUserID, in))
		if created = found != nil; created {
			s.imports.inserted(of.ID)
		}
		return err
	}
	if insertFirst {
		if err := insert(); found != nil || err != nil {
			return found, created, err
		}
		s.imports.known(of.ID)
	}
	seen, err := s.seeAgain(ctx, externalUserID, in)
	if err != nil || seen.there {
		s.imports.known(of.ID)
	}
	switch {
	case err != nil || seen.contact != nil:
		return seen.contact, false, err
	case seen.there:
		found, err = s.learners.Do(ctx, learner{externalUserID, in})
	case uncapped && !insertFirst:
		err = insert()
	}
	return found, created, err
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
	found, incomplete, err := s.store.SeeContacts(ctx, of.organization, ids, store.Now(), strings.Fields(of.told), most)
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

// insertNewcomers inserts the contacts that do not exist yet and that no other transaction inserts
// at the same time.
func (s *Service) insertNewcomers(ctx context.Context, j *change.Joint, in []newContact) ([]*db.Contact, error) {
	out := make([]*db.Contact, len(in))
	var rows []*db.Contact
	caller := map[string]int{}
	for i, c := range in {
		if _, twice := caller[*c.externalUserID]; !twice {
			caller[*c.externalUserID], rows = i, append(rows, s.row(j.Organization, c))
		}
	}
	rows, err := s.withRoom(ctx, j, in, rows)
	if err != nil {
		return nil, err
	}
	if err := j.Read(ctx); err != nil || len(rows) == 0 {
		return out, err
	}
	// Insert in a fixed order: concurrent inserts of the same contacts wait for each other, but
	// never deadlock.
	slices.SortFunc(rows, func(a, b *db.Contact) int { return strings.Compare(*a.ExternalUserID, *b.ExternalUserID) })
	for _, c := range rows {
		i := caller[*c.ExternalUserID]
		out[i] = c
		if err := j.Record(i, c.ID.UUID(), c.CreatedAt, &event.ContactCreatedPayload{Contact: eventContact(c)}); err != nil {
			return nil, err
		}
	}
	j.InsertContacts(rows, j.Happened, &j.Made)
	return out, nil
}

// withRoom returns the first rows, as many as the plan's cap allows. The other contacts are then
// identified alone, which reports the cap. All contacts of a group belong to one organization and
// therefore to one cap.
func (s *Service) withRoom(ctx context.Context, j *change.Joint, in []newContact, rows []*db.Contact) ([]*db.Contact, error) {
	limit := slices.MaxFunc(in, func(a, b newContact) int { return a.limit - b.limit }).limit
	if limit == 0 {
		return rows, nil
	}
	var n int
	j.LockAndCountContacts(&n)
	if err := j.Send(ctx); err != nil {
		return nil, err
	}
	return rows[:min(len(rows), max(0, limit-n))], nil
}

// newIdentified returns a contact that is identified for the first time.
func newIdentified(externalUserID string, in Traits) newContact {
	return newContact{externalUserID: &externalUserID, traits: in, source: "identify", consentBasis: "sdk_identify"}
}

// insertIdentified returns nil if another request has taken the id meanwhile.
func (s *Service) insertIdentified(ctx context.Context, c *change.Change, externalUserID string, in Traits) (*db.Contact, error) {
	err := s.mustHaveRoom(ctx, c)
	if problem.Is(err, problem.PlanLimit) {
		// The cap does not apply to an existing contact. Look again, now that the organization is
		// locked.
		if again, findErr := byExternalID(ctx, c, externalUserID); again != nil || findErr != nil {
			return nil, findErr
		}
	}
	if err != nil {
		return nil, err
	}
	return s.insertContact(ctx, c, newIdentified(externalUserID, in))
}
