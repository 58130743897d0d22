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
	in.check(&bad)
	return bad.Err()
}

// identifyAlone is identify in a transaction of its own, of whatever there is to do.
func (s *Service) identifyAlone(ctx context.Context, externalUserID string, in Traits) (found *db.Contact, created bool, err error) {
	err = s.changes.Run(ctx, func(c *change.Change) error {
		// Again where another request inserted it between the two looks, and a
		// third one deleted it.
		for range identifyTries {
			if found, err = byExternalID(ctx, c, externalUserID); err != nil {
				return err
			}
			if found != nil {
				created = false
				found, err = s.fill(ctx, c, found, in)
				return err
			}
			found, err = s.insertIdentified(ctx, c, externalUserID, in)
			if created = found != nil; created || err != nil {
				return err
			}
		}
		return errors.Errorf("the contact came and went %d times while it was identified", identifyTries)
	})
	return found, created, err
}

// identifyTogether is identify for what most of it is: a contact that is known and of whom
// nothing new is told, and one that is new where there is no cap. It returns nil, and has
// changed nothing, for all else.
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
	if found, err = s.seeAgain(ctx, externalUserID, in); found != nil || err != nil {
		s.imports.known(of.ID)
		return found, false, err
	}
	if uncapped && !insertFirst {
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

// seeAgain is the whole of identify for a contact that is known already and of
// whom nothing new is told, as most are. It returns nil, and has changed nothing,
// where there is more to do. Metadata is looked at under the lock only.
func (s *Service) seeAgain(ctx context.Context, externalUserID string, in Traits) (*db.Contact, error) {
	caller := change.CallerOf(ctx)
	if err := change.MayWrite(caller); err != nil {
		return nil, err
	}
	told, plain := in.columns()
	if !plain {
		return nil, nil
	}
	of := sighting{caller.Organization.ID, told}
	return change.Join(ctx, func(ctx context.Context) (*db.Contact, error) { return s.sightings.DoOrNot(ctx, of, externalUserID) })
}

// columns are those that are told, in one order, so that there is one statement for each set of
// traits. Plain says that a statement can tell by them whether a contact learns anything.
func (t *Traits) columns() (told string, plain bool) {
	return strings.Join(slices.Sorted(maps.Keys(t.told())), " "), t.Metadata == nil || string(t.Metadata) == "{}"
}

// see is seeAgain for those that are identified at once, and have at most so many bytes of
// metadata where most isn't 0.
func (s *Service) see(ctx context.Context, of sighting, ids []string, most int) ([]*db.Contact, error) {
	release, err := s.store.AcquireTransaction(ctx, of.organization)
	if err != nil {
		return nil, err
	}
	defer release()
	found, err := s.store.SeeContacts(ctx, of.organization, ids, store.Now(), strings.Fields(of.told), most)
	if err != nil {
		return nil, err
	}
	out := make([]*db.Contact, len(ids))
	for _, c := range found {
		for i, id := range ids {
			if id == *c.ExternalUserID {
				out[i] = c
			}
		}
	}
	return out, nil
}

// insertNewcomers inserts those who aren't there yet, and whom nobody inserts meanwhile.
func (s *Service) insertNewcomers(ctx context.Context, j *change.Joint, in []newContact) ([]*db.Contact, error) {
	var rows []map[string]any
	caller := map[string]int{}
	for i, c := range in {
		if _, twice := caller[*c.externalUserID]; twice {
			continue
		}
		id, row := publicid.NewContact(), s.store.Client().Contact.Create()
		if err := s.fillRow(row, id, c); err != nil {
			return nil, err
		}
		caller[*c.externalUserID], rows = i, append(rows, store.Columns(id.UUID(), row.Mutation()))
	}
	rows, err := s.withRoom(ctx, j, in, rows)
	if err != nil {
		return nil, err
	}
	// In one order: who inserts the same ones waits, but never in a circle.
	slices.SortFunc(rows, func(a, b map[string]any) int {
		return strings.Compare(a[contact.FieldExternalUserID].(string), b[contact.FieldExternalUserID].(string))
	})
	// What they are is read before their events are written: a default of the database may
	// be part of it.
	var made []*db.Contact
	if err := j.InsertContacts(rows, &made); err != nil {
		return nil, err
	}
	if err := j.Read(ctx); err != nil {
		return nil, err
	}
	out := make([]*db.Contact, len(in))
	if len(made) == 0 {
		return out, nil
	}
	for _, c := range made {
		i := caller[*c.ExternalUserID]
		out[i], j.Made = c, append(j.Made, c.ID.UUID())
		if err := j.Record(i, c.ID.UUID(), c.CreatedAt, &event.ContactCreatedPayload{Contact: eventContact(c)}); err != nil {
			return nil, err
		}
	}
	j.InsertEvents(j.Made, j.Happened)
	return out, nil
}

// withRoom are the rows that the plan's cap has room for, the first of them; those behind are
// left to be made alone, where the cap is told. All of a group are of one organization, and so
// under one cap.
func (s *Service) withRoom(ctx context.Context, j *change.Joint, in []newContact, rows []map[string]any) ([]map[string]any, error) {
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
