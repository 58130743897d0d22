package contacts

import (
	"context"
	"slices"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/ent/db/predicate"
	"earshot/internal/change"
	"earshot/internal/page"
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
	page.Query
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
			bad.Text(field, *value, 1, high)
		}
	}
	within("q", in.Q, page.MaxSearch)
	within("externalUserId", in.ExternalUserID, maxExternalUserID)
	within("source", in.Source, maxOpenEnum)
	within("consentBasis", in.ConsentBasis, maxOpenEnum)
	within("email", in.Email, problem.MaxEmail)
	if in.Email != nil {
		normal := strings.ToLower(strings.TrimSpace(*in.Email))
		in.Email = &normal
	}
	if in.Plans != nil {
		bad.Items("plan", *in.Plans, maxPlanFilter)
		for i, plan := range *in.Plans {
			bad.Text(problem.Item("plan", i), plan, 1, maxContactPlan)
		}
	}
	bad.Moment("updatedSince", in.UpdatedSince)
	if in.Sort == nil {
		standard := sortCreated
		in.Sort = &standard
	}
	if !slices.Contains([]string{sortCreated, sortLastSeen, sortMRR}, *in.Sort) {
		bad.Add("sort", "enum", "must be created, last_seen or mrr")
	}
}

// Contacts lists the organization's contacts.
func (s *Service) Contacts(ctx context.Context, in ContactQuery) (page.Page[*db.Contact], error) {
	var bad problem.Fields
	limit := in.Size(&bad, page.Standard, page.Max)
	in.check(&bad)
	sorted := in.sorted(&bad)
	if err := bad.Err(); err != nil {
		return page.Page[*db.Contact]{}, err
	}
	of := change.CallerOf(ctx).Organization.ID
	list := append(in.filters(), contact.OrganizationID(of))
	if sorted.after != nil {
		list = append(list, sorted.after)
	}
	query := func(ctx context.Context, limit, offset int, where ...predicate.Contact) ([]*store.ListedContact, error) {
		return store.ContactPages.Read(ctx, s.store, store.PageOf[predicate.Contact]{
			Where: where, Order: sorted.order, Limit: limit, Offset: offset, Most: page.FirstRead,
		})
	}
	var rows []*store.ListedContact
	var stopped **store.ListedContact
	var err error
	if in.Q == nil {
		rows, err = query(ctx, limit+1, 0, list...)
	} else {
		rows, stopped, err = page.Search[predicate.Contact, *store.ListedContact]{
			List: list, Order: sorted.order, Match: store.ContactMatches(*in.Q), Query: query,
			Holding: func(ctx context.Context, limit int) ([]uuid.UUID, error) {
				return s.store.ContactsHolding(ctx, of, *in.Q, limit)
			},
		}.First(ctx, limit+1)
	}
	if err != nil {
		return page.Page[*db.Contact]{}, errors.Wrap(err, "list contacts")
	}
	out := page.Cut(in.list(), rows, limit, sorted.place)
	if stopped != nil {
		out.NextCursor = page.Cursor(in.list(), sorted.place(*stopped))
	}
	out, err = page.LargeRows[publicid.Contact, *store.ListedContact]{
		List: in.list(), Memory: in.Memory, Place: sorted.place, ID: func(c *store.ListedContact) publicid.Contact { return c.ID },
		Load: func(ids ...publicid.Contact) ([]*store.ListedContact, error) {
			return store.ContactPages.Read(ctx, s.store, store.PageOf[predicate.Contact]{
				Where: []predicate.Contact{contact.IDIn(ids...)}, Order: sorted.order, Limit: len(ids), Most: page.All,
			})
		},
		Size: func(c *store.ListedContact) int { return page.JSONSize(c.Metadata) },
	}.Filled(ctx, out)
	return page.Each(out, func(c *store.ListedContact) *db.Contact { return &c.Contact }), err
}

func (in *ContactQuery) list() string { return page.ListOf("contacts", in) }

// sortedContacts is an order of the list, and where the page before ended in it.
type sortedContacts struct {
	order string
	after predicate.Contact
	place func(*store.ListedContact) []string
}

func (in *ContactQuery) sorted(bad *problem.Fields) (by sortedContacts) {
	var last publicid.Contact
	switch *in.Sort {
	case sortMRR:
		if revenue, ok := page.ByNumber.After(bad, in.list(), in.Query, &last); ok {
			by.after = store.ContactsBefore(revenue, last)
		}
		by.order = store.ByRevenue
		by.place = func(c *store.ListedContact) []string {
			revenue := int64(-1)
			if c.MrrCents != nil {
				revenue = *c.MrrCents
			}
			return []string{page.ByNumber.Write(revenue), c.ID.String()}
		}
	case sortLastSeen:
		if at, ok := page.ByTime.After(bad, in.list(), in.Query, &last); ok {
			by.after = func(s *sql.Selector) {
				s.Where(sql.CompositeLT([]string{s.C(contact.FieldLastSeenAt), s.C(contact.FieldID)}, at, last))
			}
		}
		by.order = store.Falling(contact.Table, contact.FieldLastSeenAt, contact.FieldID)
		by.place = func(c *store.ListedContact) []string { return []string{page.ByTime.Write(c.LastSeenAt), c.ID.String()} }
	default:
		if last := page.After[publicid.Contact](bad, in.list(), in.Query); last != nil {
			by.after = contact.IDLT(*last)
		}
		by.order = store.Falling(contact.Table, contact.FieldID)
		by.place = page.ByID(func(c *store.ListedContact) string { return c.ID.String() })
	}
	return by
}

// filters are all but the search.
func (in *ContactQuery) filters() (all []predicate.Contact) {
	if in.Plans != nil {
		all = append(all, contact.PlanIn(*in.Plans...))
	}
	if in.ExternalUserID != nil {
		all = append(all, contact.ExternalUserID(*in.ExternalUserID))
	}
	if in.Email != nil {
		all = append(all, contact.Email(*in.Email))
	}
	if in.Source != nil {
		all = append(all, contact.Source(*in.Source))
	}
	if in.ConsentBasis != nil {
		all = append(all, contact.ConsentBasis(*in.ConsentBasis))
	}
	if in.UpdatedSince != nil {
		all = append(all, contact.UpdatedAtGTE(*in.UpdatedSince))
	}
	return all
}
