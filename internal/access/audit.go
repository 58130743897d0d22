package access

import (
	"context"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/auditentry"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

const (
	// Operator is the actor of commands at the service's command line.
	Operator = "operator"
	// maxAuditFilter is longer than any id or operation name.
	maxAuditFilter = 100
	// maxAuditActions is more than the number of operations.
	maxAuditActions = 50
)

// AuditQuery filters the audit trail. A nil field doesn't filter.
type AuditQuery struct {
	page.Query
	// Actor is the id of a member or a key, or Operator.
	Actor, Resource *string
	// Actions selects entries with any of these actions.
	Actions      *[]string
	Since, Until *time.Time
}

// Audit lists the audit trail of the organization in the context, newest first. An id that doesn't
// exist matches no entries and is no error, because actors and resources may have been deleted.
func (s *Service) Audit(ctx context.Context, q AuditQuery) (page.Page[*db.AuditEntry], error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	list := page.ListOf("audit", q)
	last := page.After[publicid.AuditEntry](&bad, list, q.Query)
	for _, filter := range []struct {
		name string
		text *string
	}{{"actor", q.Actor}, {"resource", q.Resource}} {
		if filter.text != nil {
			bad.Text(filter.name, *filter.text, 1, maxAuditFilter)
		}
	}
	if q.Actions != nil {
		bad.Items("actions", *q.Actions, maxAuditActions)
		for i, action := range *q.Actions {
			bad.Text(problem.Item("actions", i), action, 1, maxAuditFilter)
		}
	}
	bad.Moment("since", q.Since)
	bad.Moment("until", q.Until)
	if err := bad.Err(); err != nil {
		return page.Page[*db.AuditEntry]{}, err
	}
	query := s.store.Lists().AuditEntry.Query().Order(db.Desc(auditentry.FieldID)).Limit(limit + 1)
	if q.Actor != nil {
		byActor(query, *q.Actor)
	}
	if q.Actions != nil {
		query.Where(auditentry.ActionIn(*q.Actions...))
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

// between selects entries by time. It also bounds the id, which contains the time, as in the log of
// deliveries.
func between(query *db.AuditEntryQuery, since, until *time.Time) {
	if since != nil {
		query.Where(auditentry.CreatedAtGTE(*since), auditentry.IDGTE(publicid.AuditEntryAt(since.Add(-time.Minute))))
	}
	if until != nil {
		query.Where(auditentry.CreatedAtLT(*until), auditentry.IDLT(publicid.AuditEntryAt(until.Add(time.Minute))))
	}
}

// byActor selects an actor's entries. An unknown actor has none.
func byActor(query *db.AuditEntryQuery, actor string) {
	switch {
	case actor == Operator:
		query.Where(auditentry.UserIDIsNil())
	case strings.HasPrefix(actor, "key_"):
		query.Where(auditentry.APIKeyID(publicid.Read[publicid.APIKey](actor)))
	default:
		query.Where(auditentry.UserID(publicid.Read[publicid.User](actor)))
	}
}
