package contacts

import (
	"context"
	"slices"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/ent/db/predicate"
	"earshot/internal/change"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// The orders of the list of contacts. All except updated are descending. Contacts without the value
// come last, and equal contacts are ordered by their creation.
const (
	sortUpdated  = "updated"
	sortCreated  = "created"
	sortLastSeen = "last_seen"
	sortMRR      = "mrr"
)

const (
	// Enough for a query that is typed by hand.
	maxPlanFilter = 20
	// Source and consent basis are open enums: an unknown value matches nothing.
	maxOpenEnum = 100
)

// ContactQuery filters and sorts the contacts. A nil field filters nothing.
type ContactQuery struct {
	page.Query
	// Q is a part of the e-mail address or name. Case is ignored.
	Q *string
	// Plans matches contacts on any of these plans.
	Plans                                       *[]string
	ExternalUserID, Email, Source, ConsentBasis *string
	page.Sync
	// Sort is created, last_seen, mrr or updated. The default is updated with IncludeDeleted, else
	// created.
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
	if in.Sort == nil {
		standard := sortCreated
		if in.IncludeDeleted != nil && *in.IncludeDeleted {
			standard = sortUpdated
		}
		in.Sort = &standard
	}
	in.Check(bad, *in.Sort == sortUpdated)
	switch {
	case !slices.Contains([]string{sortCreated, sortLastSeen, sortMRR, sortUpdated}, *in.Sort):
		bad.Add("sort", "enum", "must be created, last_seen, mrr or updated")
	case *in.Sort == sortUpdated && in.Q != nil:
		bad.Add("sort", "updated", "a search has no order of changes")
	}
}

// Contacts lists the organization's contacts.
func (s *Service) Contacts(ctx context.Context, in ContactQuery) (page.Page[*db.Contact], error) {
	var bad problem.Fields
	limit := in.Size(&bad, page.Standard, page.Max)
	in.check(&bad)
	if *in.Sort == sortUpdated {
		return s.changed(ctx, &bad, in, limit)
	}
	sorted := in.sorted(&bad)
	if err := bad.Err(); err != nil {
		return page.Page[*db.Contact]{}, err
	}
	of := change.CallerOf(ctx).Organization.ID
	list := append(in.filters(), contact.OrganizationID(of))
	if sorted.after != nil {
		list = append(list, sorted.after)
	}
	query := func(ctx context.Context, limit, offset int, where ...predicate.Contact) ([]*ListedContact, error) {
		return contactPages.Read(ctx, s.store, page.Selection[predicate.Contact]{
			Where: where, Order: sorted.order, Limit: limit, Offset: offset, Most: page.FirstRead,
		})
	}
	var rows []*ListedContact
	var stopped **ListedContact
	var err error
	if in.Q == nil {
		rows, err = query(ctx, limit+1, 0, list...)
	} else {
		rows, stopped, err = page.Search[predicate.Contact, *ListedContact]{
			List: list, Order: sorted.order, Match: contactMatches(*in.Q), Query: query,
			Holding: func(ctx context.Context, limit int) (postgres.UuidArray, error) {
				return contactsHolding(ctx, s.store, *in.Q, limit)
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
	out, err = page.Filled(ctx, s.largeContacts(ctx, in.list(), in.Memory, sorted.place), out)
	return page.Each(out, wholeContact), err
}

// list hashes the query as it did before Sync existed, so that older cursors stay valid.
func (in *ContactQuery) list() string {
	return page.ListOf("contacts", struct {
		Q                                           *string
		Plans                                       *[]string
		ExternalUserID, Email, Source, ConsentBasis *string
		UpdatedSince                                *time.Time
		IncludeDeleted                              *bool `json:",omitempty"`
		Sort                                        *string
	}{in.Q, in.Plans, in.ExternalUserID, in.Email, in.Source, in.ConsentBasis, in.UpdatedSince, in.IncludeDeleted, in.Sort})
}

// sortedContacts is an order of the list with the position where the previous page ended.
type sortedContacts struct {
	order string
	after predicate.Contact
	place func(*ListedContact) []string
}

func (in *ContactQuery) sorted(bad *problem.Fields) (by sortedContacts) {
	var last publicid.Contact
	switch *in.Sort {
	case sortMRR:
		if revenue, ok := page.ByNumber.After(bad, in.list(), in.Query, &last); ok {
			by.after = contactsBefore(revenue, last)
		}
		by.order = byRevenue
		by.place = func(c *ListedContact) []string {
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
		by.order = page.Descending(contact.Table, contact.FieldLastSeenAt, contact.FieldID)
		by.place = func(c *ListedContact) []string { return []string{page.ByTime.Write(c.LastSeenAt), c.ID.String()} }
	default:
		if last := page.After[publicid.Contact](bad, in.list(), in.Query); last != nil {
			by.after = contact.IDLT(*last)
		}
		by.order = page.Descending(contact.Table, contact.FieldID)
		by.place = page.ByID(func(c *ListedContact) string { return c.ID.String() })
	}
	return by
}

// filters returns all conditions except the search.
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
