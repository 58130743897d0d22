package postgres

import (
	"context"

	"entgo.io/ent"
	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/intercept"
	"earshot/internal/publicid"
)

// ErrNoOrganization is returned by every query and change that runs without an
// organization in its context.
var ErrNoOrganization = errors.New("no organization in the context")

// ErrForeignOrganization is returned when a row would be created in an
// organization other than the context's.
var ErrForeignOrganization = errors.New("row belongs to another organization")

type scopeKey struct{}

type scope struct {
	organization publicid.Organization
	system       string
}

// WithOrganization limits everything done with the context to one organization.
func WithOrganization(ctx context.Context, id publicid.Organization) context.Context {
	return context.WithValue(ctx, scopeKey{}, scope{organization: id})
}

// scopeToOrganization puts the limit into the client, where no use case can forget it. Queries,
// updates and deletions see only the organization's rows. Creations get the organization of the
// context. Transactions of the client inherit the limit.
//
// It also hides deleted webhooks from every query, in any context.
//
// The limit does not cover hand-written SQL (see sql.go), HasX predicates and the updating half of an upsert. The conflict
// of an upsert must therefore be on a key of the organization. The database refuses a foreign key to
// a row of another organization: see tables in internal/migrate/authoring.
func scopeToOrganization(client *db.Client) {
	client.Intercept(intercept.TraverseFunc(func(ctx context.Context, q intercept.Query) error {
		limit, all, err := limitOf(ctx, q.Type())
		if err == nil && !all {
			q.WhereP(limit)
		}
		if q.Type() == db.TypeWebhook {
			q.WhereP(notDeleted)
		}
		return err
	}))
	client.Use(func(next ent.Mutator) ent.Mutator {
		return ent.MutateFunc(func(ctx context.Context, m ent.Mutation) (ent.Value, error) {
			if err := limitMutation(ctx, m); err != nil {
				return nil, err
			}
			return next.Mutate(ctx, m)
		})
	})
}

// OrganizationColumn is the column of the organization, which every table of customers has.
const OrganizationColumn = "organization_id"

// limitOf is the predicate that the context puts on an entity's rows. If all is true, there is none.
func limitOf(ctx context.Context, entity string) (limit func(*sql.Selector), all bool, err error) {
	held, ok := ctx.Value(scopeKey{}).(scope)
	switch {
	case !ok:
		return nil, false, errors.Wrap(ErrNoOrganization, entity)
	case held.system != "":
		return nil, true, nil
	}
	column := OrganizationColumn
	if entity == db.TypeOrganization {
		column = "id"
	}
	return func(s *sql.Selector) { s.Where(sql.EQ(s.C(column), held.organization)) }, false, nil
}

// notDeleted leaves out deleted webhooks. The retention removes their rows later.
func notDeleted(s *sql.Selector) { s.Where(sql.IsNull(s.C("deleted_at"))) }

// organizationOf is the organization of the context, for hand-written SQL.
func organizationOf(ctx context.Context) (publicid.Organization, error) {
	held, _ := ctx.Value(scopeKey{}).(scope)
	if held.organization.IsZero() {
		return publicid.Organization{}, ErrNoOrganization
	}
	return held.organization, nil
}

func limitMutation(ctx context.Context, m ent.Mutation) error {
	limit, all, err := limitOf(ctx, m.Type())
	if err != nil || all {
		return err
	}
	if !m.Op().Is(ent.OpCreate) {
		m.(interface{ WhereP(...func(*sql.Selector)) }).WhereP(limit)
		return nil
	}
	if m.Type() == db.TypeOrganization {
		return ErrForeignOrganization
	}
	held := ctx.Value(scopeKey{}).(scope).organization
	if given, ok := m.Field(OrganizationColumn); ok && given != held {
		return ErrForeignOrganization
	}
	if err := m.SetField(OrganizationColumn, held); err != nil {
		return errors.Wrap(err, "stamp the organization")
	}
	return nil
}
