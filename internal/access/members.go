package access

import (
	"context"
	"strings"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/user"
	"earshot/internal/change"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

const (
	// maxMemberName is the limit that the specification sets for contacts.
	maxMemberName = 200
	// maxMembers is more than the staff that a company assigns to its feedback. Members are counted
	// under the organization's lock.
	maxMembers = 1000
)

// NewMember is the input for a new member.
type NewMember struct {
	Email, Name string
	// Role is owner, admin or member.
	Role string
}

func (in *NewMember) check() error {
	in.Email, in.Name = normalEmail(in.Email), strings.TrimSpace(in.Name)
	var bad problem.Fields
	bad.Email("email", in.Email)
	bad.Line("name", in.Name, 1, maxMemberName)
	checkRole(&bad, in.Role)
	return bad.Err()
}

func normalEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

func checkRole(bad *problem.Fields, role string) {
	if user.RoleValidator(user.Role(role)) != nil {
		bad.Add("role", "enum", "must be owner, admin or member")
	}
}

// Members lists the members of the organization in the context, oldest first.
func (s *Service) Members(ctx context.Context, q page.Query) (page.Page[*db.User], error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	list := page.ListOf("members")
	last := page.After[publicid.User](&bad, list, q)
	if err := bad.Err(); err != nil {
		return page.Page[*db.User]{}, err
	}
	query := s.store.Client().User.Query().Where(isMember).Order(db.Asc(user.FieldID)).Limit(limit + 1)
	if last != nil {
		query.Where(user.IDGT(*last))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return page.Page[*db.User]{}, errors.Wrap(err, "list members")
	}
	return page.Cut(list, rows, limit, page.ByID(func(u *db.User) string { return u.ID.String() })), nil
}

// Member loads one member.
func (s *Service) Member(ctx context.Context, id publicid.User) (*db.User, error) {
	return onlyMember(ctx, s.store.Client().User.Query().Where(user.ID(id)))
}

// MemberByEmail loads the member with an e-mail address.
func (s *Service) MemberByEmail(ctx context.Context, email string) (*db.User, error) {
	return onlyMember(ctx, s.store.Client().User.Query().Where(hasEmail(normalEmail(email))))
}

// RemovedMemberByEmail loads the removed member that had an e-mail address.
func (s *Service) RemovedMemberByEmail(ctx context.Context, email string) (*db.User, error) {
	found, err := s.store.Client().User.Query().Where(hasEmail(normalEmail(email)), user.RoleIsNil()).First(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("removed member")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the removed member")
	}
	return found, nil
}

func onlyMember(ctx context.Context, query *db.UserQuery) (*db.User, error) {
	found, err := query.Where(isMember).Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("member")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the member")
	}
	return found, nil
}

// hasEmail selects present and removed members by a normalized address. It also matches addresses
// stored before they were lower-cased. The kind is a literal, because the database can't match a
// parameter to the condition of the partial index.
func hasEmail(normal string) func(*sql.Selector) {
	return func(s *sql.Selector) {
		s.Where(sql.And(sql.EQ(sql.Lower(s.C(user.FieldEmail)), normal), sql.ExprP(s.C(user.FieldKind)+" = 'member'")))
	}
}

// CreateMember adds a member to the caller's organization. The address of a present member is
// problem.Conflict. The address of a removed member makes the same user a member again.
func (s *Service) CreateMember(ctx context.Context, in NewMember, q change.Request[*db.User]) (*db.User, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*db.User, error) { return createMember(ctx, c, in) })
}

// EnlistMember is CreateMember for the operator, in the organization in the context.
func (s *Service) EnlistMember(ctx context.Context, in NewMember) (made *db.User, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.asOperator(ctx, func(ctx context.Context, c *change.Change) (err error) {
		made, err = createMember(ctx, c, in)
		return err
	})
	return made, err
}

func createMember(ctx context.Context, c *change.Change, in NewMember) (*db.User, error) {
	by, err := lockMembers(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := by.mayManage(user.Role(in.Role)); err != nil {
		return nil, err
	}
	former, err := formerMember(ctx, c, in.Email)
	if err != nil {
		return nil, err
	}
	if err := mustHaveRoomForMember(ctx, c); err != nil {
		return nil, err
	}
	var made *db.User
	if former == nil {
		made, err = c.User.Create().SetEmail(in.Email).SetName(in.Name).SetRole(user.Role(in.Role)).Save(ctx)
	} else {
		made, err = c.User.UpdateOne(former).
			SetEmail(in.Email).SetName(in.Name).SetRole(user.Role(in.Role)).SetUpdatedAt(postgres.Now()).Save(ctx)
	}
	if err != nil {
		return nil, errors.Wrap(err, "write the member")
	}
	c.Audit("createMember", made.ID)
	return made, nil
}

// formerMember returns the removed member with the e-mail address, or nil. If a present member has
// the address, it returns problem.Conflict.
func formerMember(ctx context.Context, c *change.Change, email string) (*db.User, error) {
	found, err := c.User.Query().Where(hasEmail(email)).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "look for the e-mail address")
	}
	var former *db.User
	for _, u := range found {
		if u.Role != nil {
			return nil, problem.New(problem.Conflict, "A member has that e-mail address already.").With("field", "email")
		}
		former = u
	}
	return former, nil
}

// lockMembers serializes changes of members and of keys created for them. It returns the caller of
// the change.
func lockMembers(ctx context.Context, c *change.Change) (manager, error) {
	if err := c.LockOrganization(ctx); err != nil {
		return manager{}, err
	}
	return managerOf(ctx, c)
}

func mustHaveRoomForMember(ctx context.Context, c *change.Change) error {
	n, err := c.User.Query().Where(isMember).Count(ctx)
	if err != nil {
		return errors.Wrap(err, "count members")
	}
	if n >= maxMembers {
		return problem.OverPlan("member", maxMembers, n)
	}
	return nil
}
