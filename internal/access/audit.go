package access

import (
	"context"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/apikey"
	"earshot/ent/db/auditentry"
	"earshot/ent/db/user"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// Operator is the actor at the command line of the service.
const Operator = "operator"

// AuditQuery filters the audit trail; nil leaves nothing out.
type AuditQuery struct {
	page.Query
	// Actor is a member's id, a key's, or Operator.
	Actor, Action, Resource *string
	Since, Until            *time.Time
}

// Audit lists the audit trail of the organization in the context, newest first. An actor who isn't
// there is problem.NotFound; what was changed may be gone.
func (s *Service) Audit(ctx context.Context, q AuditQuery) (page.Page[*db.AuditEntry], error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	list := page.ListOf("audit", q)
	last := page.After[publicid.AuditEntry](&bad, list, q.Query)
	bad.Moment("since", q.Since)
	bad.Moment("until", q.Until)
	if err := bad.Err(); err != nil {
		return page.Page[*db.AuditEntry]{}, err
	}
	query := s.store.Lists().AuditEntry.Query().Order(db.Desc(auditentry.FieldID)).Limit(limit + 1)
	if err := s.byActor(ctx, query, q.Actor); err != nil {
		return page.Page[*db.AuditEntry]{}, err
	}
	if q.Action != nil {
		query.Where(auditentry.Action(*q.Action))
	}
	if q.Resource != nil {
		query.Where(auditentry.ResourceID(*q.Resource))
	}
	between(query, q.Since, q.Until)
	if last != nil {
		query.Where(auditentry.IDLT(*last))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return page.Page[*db.AuditEntry]{}, errors.Wrap(err, "list the audit trail")
	}
	return page.Cut(list, rows, limit, page.ByID(func(e *db.AuditEntry) string { return e.ID.String() })), nil
}

// between leaves out what was done at another time. The id carries its moment, too, as in the log
// of deliveries.
func between(query *db.AuditEntryQuery, since, until *time.Time) {
	if since != nil {
		query.Where(auditentry.CreatedAtGTE(*since), auditentry.IDGTE(publicid.AuditEntryAt(since.Add(-time.Minute))))
	}
	if until != nil {
		query.Where(auditentry.CreatedAtLT(*until), auditentry.IDLT(publicid.AuditEntryAt(until.Add(time.Minute))))
	}
}

func (s *Service) byActor(ctx context.Context, query *db.AuditEntryQuery, actor *string) error {
	var there interface {
		Count(ctx context.Context) (int, error)
	}
	switch {
	case actor == nil:
		return nil
	case *actor == Operator:
		query.Where(auditentry.UserIDIsNil())
		return nil
	case strings.HasPrefix(*actor, "key_"):
		id := publicid.Read[publicid.APIKey](*actor)
		query.Where(auditentry.APIKeyID(id))
		there = s.store.Client().APIKey.Query().Where(apikey.ID(id))
	default: // who was removed is still a user
		id := publicid.Read[publicid.User](*actor)
		query.Where(auditentry.UserID(id))
		there = s.store.Client().User.Query().Where(user.ID(id))
	}
	found, err := store.Exists(ctx, there)
	if err != nil {
		return errors.Wrap(err, "look up the actor")
	}
	if !found {
		return problem.MissingIn("actor", "member or API key")
	}
	return nil
}
