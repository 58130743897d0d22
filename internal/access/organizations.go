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
)

// NewOrganization is the input for a new organization.
type NewOrganization struct {
	Name string
	// Slug is the name in the addresses of the public boards. It may be empty.
	Slug string
	// Plan is free, pro or business.
	Plan string
	// SubscriberMailsAllowed permits e-mails to end-users through the operator's mail server.
	SubscriberMailsAllowed bool
	// The first member is the owner, and the operator's API keys act as this member.
	OwnerEmail, OwnerName string
}

// CreateOrganization creates an organization with its owner.
func (s *Service) CreateOrganization(ctx context.Context, in NewOrganization) (*db.Organization, *db.User, error) {
	in.OwnerEmail = normalEmail(in.OwnerEmail)
	var bad problem.Fields
	bad.Shown("name", in.Name, 1, maxOrganizationName)
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
	ctx = s.store.Across("a new organization is in none yet").Context(ctx)
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

// FindOrganization loads an organization with its oldest owner. A nil id selects the only
// organization. It returns problem.NotFound if there is none, or if id is nil and there are
// several.
func (s *Service) FindOrganization(ctx context.Context, id *publicid.Organization) (*db.Organization, *db.User, error) {
	ctx = s.store.Across("the command line chooses the organization").Context(ctx)
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
