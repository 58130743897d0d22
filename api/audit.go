package api

import (
	"context"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/access"
)

func (s *server) ListAudit(ctx context.Context, r gen.ListAuditRequestObject) (gen.ListAuditResponseObject, error) {
	p, err := s.Access.Audit(ctx, access.AuditQuery{
		Query: pageQuery(r.Params.Cursor, r.Params.Limit), Actor: r.Params.Actor, Actions: r.Params.Actions,
		Resource: r.Params.Resource, Since: r.Params.Since, Until: r.Params.Until,
	})
	if err != nil {
		return nil, err
	}
	return gen.ListAudit200JSONResponse{Data: each(p.Items, auditEntry), NextCursor: orNull(p.NextCursor)}, nil
}

func auditEntry(e *db.AuditEntry) gen.AuditEntry {
	entry := gen.AuditEntry{ID: e.ID.String(), Action: e.Action, CreatedAt: e.CreatedAt}
	entry.Actor.Kind, entry.Actor.MemberID, entry.Actor.APIKeyID = "member", idOrNull(e.UserID), idOrNull(e.APIKeyID)
	if e.UserID == nil {
		entry.Actor.Kind = access.Operator
	}
	entry.Resource.Kind, entry.Resource.ID = e.ResourceKind, e.ResourceID
	return entry
}
