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

// identifyTries bounds a race that takes two other requests to lose once.
const identifyTries = 10

// IdentifyContact inserts the contact with the caller's own id for it, or fills
// what is still unknown of the one that is there (specification, Identify rules
// 1 to 7); created tells which. It records contact.created, or contact.updated
// where a trait changed.
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

// identifyAlone is identify in a transaction of its own, of whatever there is to do.
func (s *Service) identifyAlone(ctx context.Context, externalUserID string, in Traits) (found *db.Contact, created bool, err error) {
	err = s.changes.Run(ctx, func(c *change.Change) (err error) {
		found, created, err = s.identify(ctx, c, externalUserID, in)
		return err
	})
	return found, created, err
}

// identify is identifyAlone in a transaction of its caller. The contact stays locked.
func (s *Service) identify(ctx context.Context, c *change.Change, externalUserID string, in Traits) (found *db.Contact, created bool, err error) {
	// Again where another request inserted it between the two looks, and a third one
	// deleted it.
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

// identifyTogether is identify for what most of it is: a contact that is known, whatever it
// learns, and one that is new where there is no cap. It returns nil, and has changed nothing,
// for all else.
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

// sighting is what contacts have in common that one statement sees again: their
// organization, and what is told of them, as columns.
type sighting struct {
	organization publicid.Organization
	told         string
}

// seen is what one look tells of a contact: that it is there, and the contact itself where it
// learns nothing, so that this was all.
type seen struct {
	contact *db.Contact
	there   bool
}

// seeAgain is the whole of identify for a contact that is known already and of
// whom nothing new is told, as most are.
func (s *Service) seeAgain(ctx context.Context, externalUserID string, in Traits) (seen, error) {
	caller := change.CallerOf(ctx)
	if err := change.MayWrite(caller); err != nil {
		return seen{}, err
	}
	of := sighting{caller.Organization.ID, in.columns()}
	return change.Join(ctx, func(ctx context.Context) (seen, error) { return s.sightings.DoOrNot(ctx, of, externalUserID) })
}

// columns are those that are told, in one order, so that there is one statement for each set of
// traits. Metadata without keys tells nothing.
func (t *Traits) columns() string {
	told := t.told()
	if string(t.Metadata) == "{}" {
		delete(told, contact.FieldMetadata)
	}
	return strings.Join(slices.Sorted(maps.Keys(told)), " ")
}

// see is seeAgain for those that are identified at once. Who has more than so many bytes of
// metadata, where most isn't 0, is taken to learn something.
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

// insertNewcomers inserts those who aren't there yet, and whom nobody inserts meanwhile.
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
	// In one order: who inserts the same ones waits, but never in a circle.
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

// withRoom are the rows that the plan's cap has room for, the first of them; those behind are
// left to be made alone, where the cap is told. All of a group are of one organization, and so
// under one cap.
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

// newIdentified is who is identified for the first time.
func newIdentified(externalUserID string, in Traits) newContact {
	return newContact{externalUserID: &externalUserID, traits: in, source: "identify", consentBasis: "sdk_identify"}
}

// insertIdentified returns nil when the id was taken in the meantime.
func (s *Service) insertIdentified(ctx context.Context, c *change.Change, externalUserID string, in Traits) (*db.Contact, error) {
	err := s.mustHaveRoom(ctx, c)
	if problem.Is(err, problem.PlanLimit) {
		// Who is there already never meets the cap, so look again now that the
		// organization is locked.
		if again, findErr := byExternalID(ctx, c, externalUserID); again != nil || findErr != nil {
			return nil, findErr
		}
	}
	if err != nil {
		return nil, err
	}
	return s.insertContact(ctx, c, newIdentified(externalUserID, in))
}
