package feedback

import (
	"context"
	"slices"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// The orders of the list of contacts. All are descending, contacts without the
// value come last, and contacts that are equal go by their creation.
const (
	sortCreated  = "created"
	sortLastSeen = "last_seen"
	sortMRR      = "mrr"
)

const (
	// As many as anybody types into an address.
	maxPlanFilter = 20
	// Source and consent basis are open enums: what is unknown finds nothing.
	maxOpenEnum = 100
)

// ContactQuery filters and sorts the contacts. A member that is nil filters
// nothing.
type ContactQuery struct {
	PageQuery
	// Q is a part of the e-mail address or name, without regard to case.
	Q *string
	// Plans: any of them.
	Plans                                       *[]string
	ExternalUserID, Email, Source, ConsentBasis *string
	UpdatedSince                                *time.Time
	// Sort is created (which nil is, too), last_seen or mrr.
	Sort *string
}

func (in *ContactQuery) check(bad *problem.Fields) {
	within := func(field string, value *string, high int) {
		if value != nil {
			text(bad, field, *value, 1, high)
		}
	}
	within("q", in.Q, maxSearch)
	within("externalUserId", in.ExternalUserID, maxExternalUserID)
	within("source", in.Source, maxOpenEnum)
	within("consentBasis", in.ConsentBasis, maxOpenEnum)
	if in.Email != nil {
		normal := strings.ToLower(strings.TrimSpace(*in.Email))
		in.Email = &normal
		text(bad, "email", normal, 1, maxEmail)
	}
	if in.Plans != nil {
		some(bad, "plan", *in.Plans, maxPlanFilter)
		for i, plan := range *in.Plans {
			text(bad, item("plan", i), plan, 1, maxContactPlan)
		}
	}
	moment(bad, "updatedSince", in.UpdatedSince)
	if in.Sort == nil {
		standard := sortCreated
		in.Sort = &standard
	}
	if !slices.Contains([]string{sortCreated, sortLastSeen, sortMRR}, *in.Sort) {
		bad.Add("sort", "enum", "must be created, last_seen or mrr")
	}
}

// Contacts lists the organization's contacts.
func (s *Service) Contacts(ctx context.Context, in ContactQuery) (Page[*db.Contact], error) {
	var bad problem.Fields
	limit := in.limit(&bad, standardPage, maxPage)
	in.check(&bad)
	list := "contacts." + *in.Sort
	query := s.store.Client().Contact.Query().Limit(limit + 1)
	place := in.sorted(&bad, list, query)
	if err := bad.Err(); err != nil {
		return Page[*db.Contact]{}, err
	}
	in.filter(query)
	rows, err := query.All(store.FreshPlan(ctx))
	if err != nil {
		return Page[*db.Contact]{}, errors.Wrap(err, "list contacts")
	}
	return page(list, rows, limit, place), nil
}

// sorted puts the query in order and behind the cursor, and returns a contact's
// place in that order.
func (in *ContactQuery) sorted(bad *problem.Fields, list string, query *db.ContactQuery) func(*db.Contact) []string {
	var last publicid.Contact
	switch *in.Sort {
	case sortMRR:
		if revenue, ok := byNumber.after(bad, list, in.PageQuery, &last); ok {
			query.Where(store.ContactsBefore(revenue, last))
		}
		query.Order(func(s *sql.Selector) {
			s.OrderExpr(sql.Expr(store.ContactRevenue + " DESC")).OrderBy(sql.Desc(s.C(contact.FieldID)))
		})
		return func(c *db.Contact) []string {
			revenue := int64(-1)
			if c.MrrCents != nil {
				revenue = *c.MrrCents
			}
			return []string{byNumber.write(revenue), c.ID.String()}
		}
	case sortLastSeen:
		if at, ok := byTime.after(bad, list, in.PageQuery, &last); ok {
			query.Where(func(s *sql.Selector) {
				s.Where(sql.CompositeLT([]string{s.C(contact.FieldLastSeenAt), s.C(contact.FieldID)}, at, last))
			})
		}
		query.Order(db.Desc(contact.FieldLastSeenAt, contact.FieldID))
		return func(c *db.Contact) []string { return []string{byTime.write(c.LastSeenAt), c.ID.String()} }
	default:
		if last := after[publicid.Contact](bad, list, in.PageQuery); last != nil {
			query.Where(contact.IDLT(*last))
		}
		query.Order(db.Desc(contact.FieldID))
		return byID(func(c *db.Contact) string { return c.ID.String() })
	}
}

func (in *ContactQuery) filter(query *db.ContactQuery) {
	if in.Q != nil {
		query.Where(store.ContactsWith(*in.Q))
	}
	if in.Plans != nil {
		query.Where(contact.PlanIn(*in.Plans...))
	}
	if in.ExternalUserID != nil {
		query.Where(contact.ExternalUserID(*in.ExternalUserID))
	}
	if in.Email != nil {
		query.Where(contact.Email(*in.Email))
	}
	if in.Source != nil {
		query.Where(contact.Source(*in.Source))
	}
	if in.ConsentBasis != nil {
		query.Where(contact.ConsentBasis(*in.ConsentBasis))
	}
	if in.UpdatedSince != nil {
		query.Where(contact.UpdatedAtGTE(*in.UpdatedSince))
	}
}
