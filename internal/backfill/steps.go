package backfill

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/ent/db"
	"earshot/ent/db/backfilladdress"
	"earshot/ent/db/contact"
	"earshot/ent/db/contactbackfill"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/jobs"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// Progress is the progress of a backfill. It contains no personal data. Status is the status of the row,
// or empty if the row is gone.
type Progress struct {
	Status                             string
	Addresses, Left                    int
	Matched, Created, Existed, LeftOut int
	Invalid                            int
}

// ProgressOf returns the progress in a receipt.
func ProgressOf(b *db.ContactBackfill, left int) Progress {
	return Progress{
		Status: string(b.Status), Addresses: b.Addresses, Left: left, Invalid: b.InvalidLines,
		Matched: b.ContactsCreated + b.ContactsExisted + b.ContactsLeftOut,
		Created: b.ContactsCreated, Existed: b.ContactsExisted, LeftOut: b.ContactsLeftOut,
	}
}

// Continue processes one page of a backfill. The same transaction deletes the processed addresses, so a
// retry after a kill repeats no work. It acts on behalf of the service and in every billing state,
// because the backfill was already accepted.
func (s *Service) Continue(ctx context.Context, id publicid.ContactBackfill) (Progress, error) {
	found, err := s.Backfill(ctx, id)
	if problem.Is(err, problem.NotFound) {
		return Progress{}, nil
	}
	if err != nil {
		return Progress{}, err
	}
	now := found
	if found.Status == contactbackfill.StatusRunning {
		err = s.changes.RunForService(ctx, found.OrganizationID, func(ctx context.Context, c *change.Change) error {
			now, err = c.ContactBackfill.Query().Where(contactbackfill.ID(id)).ForUpdate(postgres.NoKeyUpdate).Only(ctx)
			if err != nil {
				return errors.Wrap(err, "lock the backfill")
			}
			if now.Status == contactbackfill.StatusRunning {
				now, err = s.page(ctx, c, now)
			}
			return err
		})
	}
	if err != nil {
		return Progress{}, err
	}
	left, err := s.Left(ctx, now)
	return ProgressOf(now, left), err
}

// page processes one page of addresses. It locks the addresses first and reads the activity last, so
// that it cannot undo an erasure. A later erasure waits for the locked addresses. An earlier one has
// removed the hashes before page reads the activity.
func (s *Service) page(ctx context.Context, c *change.Change, of *db.ContactBackfill) (*db.ContactBackfill, error) {
	// Confirmed links also create contacts, so the lock makes them wait.
	if err := c.LockOrganization(ctx); err != nil {
		return nil, err
	}
	rows, err := c.BackfillAddress.Query().Where(backfilladdress.BackfillID(of.ID)).Order(db.Asc(backfilladdress.FieldID)).
		Limit(page).ForUpdate().All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "load addresses")
	}
	update := c.ContactBackfill.UpdateOne(of)
	if len(rows) == 0 {
		update.SetStatus(contactbackfill.StatusCompleted).SetFinishedAt(postgres.Now())
	}
	if err := s.look(ctx, c, of, rows, update); err != nil {
		return nil, err
	}
	ids := make([]publicid.BackfillAddress, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	if _, err := c.BackfillAddress.Delete().Where(backfilladdress.IDIn(ids...)).Exec(ctx); err != nil {
		return nil, errors.Wrap(err, "remove addresses")
	}
	after, err := update.Save(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "note the place of the backfill")
	}
	return after, nil
}

// look creates contacts for people with activity and without a contact.
func (s *Service) look(
	ctx context.Context, c *change.Change, of *db.ContactBackfill, rows []*db.BackfillAddress, update *db.ContactBackfillUpdateOne,
) error {
	people, err := s.open(rows)
	if err != nil {
		return err
	}
	known, err := knownOf(ctx, c, people)
	if err != nil {
		return err
	}
	hashes := make([][]byte, len(people))
	for i, p := range people {
		hashes[i] = s.contacts.EmailHash(p.Email)
	}
	active, err := VisitorsActivity(ctx, c.Tx, hashes, of.ActiveBefore)
	if err != nil {
		return err
	}
	for i, p := range people {
		activity, found := active[string(hashes[i])]
		switch {
		case !found:
		case known[p.Email]:
			update.AddContactsExisted(1)
		default:
			err := s.contacts.Infer(ctx, c, contacts.Inferred{
				Email: p.Email, Name: p.Name, Source: activity.Source, FirstSeenAt: activity.First, LastSeenAt: activity.Last,
			})
			switch {
			case problem.Is(err, problem.PlanLimit):
				update.AddContactsLeftOut(1)
			case err != nil:
				return err
			default:
				update.AddContactsCreated(1)
			}
		}
	}
	return nil
}

// open opens the sealed addresses. A missing key is an error, so the run waits for the key.
func (s *Service) open(rows []*db.BackfillAddress) ([]Person, error) {
	people := make([]Person, len(rows))
	for i, r := range rows {
		text, err := s.secrets.OpenApart(r.ID.String(), r.Sealed)
		if err != nil {
			return nil, errors.Wrap(err, "open an address of the backfill; its key has to be in EARSHOT_SECRET_KEYS until the backfill is over")
		}
		if err := json.Unmarshal([]byte(text), &people[i]); err != nil {
			return nil, errors.New("decode an address of the backfill") // without the cause, which may quote the address
		}
	}
	return people, nil
}

// knownOf returns the addresses that existing contacts have.
func knownOf(ctx context.Context, c *change.Change, people []Person) (map[string]bool, error) {
	emails := make([]string, len(people))
	for i, p := range people {
		emails[i] = p.Email
	}
	found, err := c.Contact.Query().Where(contact.EmailIn(emails...)).Select(contact.FieldEmail).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "look for contacts with the addresses")
	}
	known := make(map[string]bool, len(found))
	for _, k := range found {
		known[*k.Email] = true
	}
	return known, nil
}

// Sweep finds backfills without a run. A backfill whose run an operator terminated is canceled.
func (s *Service) Sweep() jobs.Sweep { return jobs.Sweep{Rows: s.overdue} }

const overdueSQL = `
SELECT id, organization_id, created_at FROM contact_backfills
WHERE status = 'running' AND created_at <= now() - make_interval(secs => $1) AND (created_at, id) > ($2, $3::uuid)
ORDER BY created_at, id LIMIT $4`

func (s *Service) overdue(ctx context.Context, grace time.Duration, after jobs.Overdue, limit int) ([]jobs.Overdue, error) {
	return postgres.CollectAcross(ctx, s.store.Across("find running backfills"), overdueSQL, func(row pgx.CollectableRow) (o jobs.Overdue, err error) {
		var (
			id publicid.ContactBackfill
			of publicid.Organization
		)
		err = row.Scan(&id, &of, &o.At)
		o.Request, o.Row = Run(id, of), id.UUID()
		o.Ended = func(ctx context.Context) error { return s.Cancel(ctx, id) }
		return o, err
	}, grace.Seconds(), after.At, after.Row.String(), limit)
}

const cancelSQL = `
WITH ended AS (
  UPDATE contact_backfills SET status = 'canceled', finished_at = now() WHERE organization_id = $1 AND id = $2 AND status = 'running' RETURNING id
) DELETE FROM backfill_addresses WHERE backfill_id IN (SELECT id FROM ended)`

// Cancel cancels a running backfill of any organization and deletes its remaining addresses. A backfill
// that has already ended stays as it is.
func (s *Service) Cancel(ctx context.Context, id publicid.ContactBackfill) error {
	ctx, err := postgres.InOrganizationOf(ctx, s.store, id)
	if db.IsNotFound(err) {
		return nil
	}
	if err == nil {
		_, err = s.store.Exec(ctx, cancelSQL, id.UUID())
	}
	if err != nil {
		return errors.Wrap(err, "cancel the backfill")
	}
	return nil
}
