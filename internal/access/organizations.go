package access

import (
	"context"

	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/organization"
	"earshot/ent/db/user"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// NewOrganization is what to make an organization of.
type NewOrganization struct {
	Name string
	// Slug is its name in the addresses of its public boards; empty is none.
	Slug string
	// Plan is free, pro or business.
	Plan string
	// SubscriberMailsAllowed lets it e-mail its end-users, by the operator's mail server.
	SubscriberMailsAllowed bool
	// The first member, its owner: who API keys act as.
	OwnerEmail, OwnerName string
}

// CreateOrganization makes an organization with its owner.
func (s *Service) CreateOrganization(ctx context.Context, in NewOrganization) (*db.Organization, *db.User, error) {
	in.OwnerEmail = normalEmail(in.OwnerEmail)
	var bad problem.Fields
	bad.Text("name", in.Name, 1, maxOrganizationName)
	if in.Slug != "" {
		checkOrganizationSlug(&bad, in.Slug)
	}
	bad.Line("owner name", in.OwnerName, 1, maxMemberName)
	bad.Email("owner email", in.OwnerEmail)
	if organization.PlanValidator(organization.Plan(in.Plan)) != nil {
		bad.Add("plan", "enum", "must be free, pro or business")
	}
	if err := bad.Err(); err != nil {
		return nil, nil, err
	}
	ctx = store.System(ctx, "a new organization is in none yet")
	var (
		made  *db.Organization
		owner *db.User
	)
	err := s.store.InTx(ctx, func(tx *db.Tx) (err error) {
		create := tx.Organization.Create().SetName(in.Name).SetPlan(organization.Plan(in.Plan)).
			SetSubscriberMailsAllowed(in.SubscriberMailsAllowed)
		if in.Slug != "" {
			create.SetSlug(in.Slug)
		}
		made, err = create.Save(ctx)
		if sqlgraph.IsUniqueConstraintError(err) {
			return slugTaken()
		}
		if err != nil {
			return errors.Wrap(err, "insert the organization")
		}
		owner, err = tx.User.Create().
			SetOrganizationID(made.ID).SetEmail(in.OwnerEmail).SetName(in.OwnerName).SetRole(user.RoleOwner).Save(ctx)
		if err != nil {
			return errors.Wrap(err, "insert the owner")
		}
		line := tx.AuditEntry.Create().SetOrganizationID(made.ID).SetAction("createOrganization").
			SetResourceKind("organization").SetResourceID(made.ID.String())
		if err := line.Exec(ctx); err != nil {
			return errors.Wrap(err, "insert the line of the audit trail")
		}
		return nil
	})
	return made, owner, err
}

// FindOrganization loads an organization with its oldest owner, or the only
// organization there is when id is nil. It returns problem.NotFound, also when
// there are several to choose from.
func (s *Service) FindOrganization(ctx context.Context, id *publicid.Organization) (*db.Organization, *db.User, error) {
	ctx = store.System(ctx, "the command line chooses the organization")
	query := s.store.Client().Organization.Query()
	if id != nil {
		query.Where(organization.ID(*id))
	}
	found, err := query.Only(ctx)
	if db.IsNotFound(err) {
		return nil, nil, problem.New(problem.NotFound, "There is no such organization; make one with `earshot org create`.")
	}
	if db.IsNotSingular(err) {
		return nil, nil, problem.New(problem.NotFound, "There are several organizations; name one with --org.")
	}
	if err != nil {
		return nil, nil, errors.Wrap(err, "load the organization")
	}
	owner, err := s.store.Client().User.Query().
		Where(user.OrganizationID(found.ID), user.RoleEQ(user.RoleOwner)).Order(db.Asc(user.FieldID)).First(ctx)
	if err != nil {
		return nil, nil, errors.Wrap(err, "load the organization's owner")
	}
	return found, owner, nil
}
