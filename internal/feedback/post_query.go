package feedback

import (
	"slices"
	"strings"

	"earshot/ent/db/post"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// The orders of a list of posts. All except updated are descending, and equal posts are ordered by
// their creation.
const (
	sortUpdated   = "updated"
	sortRelevance = "relevance"
	sortNewest    = "newest"
	sortVotes     = "votes"
	sortActive    = "active"
	sortRevenue   = "revenue"
)

// PostQuery filters and sorts the posts of a board. A field that is nil or empty filters nothing.
type PostQuery struct {
	page.Query
	// Q has words that the title and the text together must contain.
	Q *string
	// Statuses and TagIDs match posts with any of the values.
	Statuses, TagIDs *[]string
	ContactID        *string
	page.Sync
	// Sort is relevance, newest, votes, active, revenue or updated. The default is relevance with a
	// Q, updated with a Sync, else newest.
	Sort *string
	// Currency is the currency of the revenue.
	Currency *string `json:",omitempty"` // so that older cursors stay valid
}

// checkedPostQuery is a PostQuery with its parts parsed.
type checkedPostQuery struct {
	q        string
	statuses []post.Status
	tags     []publicid.Tag
	contact  *publicid.Contact
	sort     string
	currency string
	limit    int
	list     string
	cursor   string
	memory   *page.Reservation

	// The end of the previous page: an id, and the value that precedes it in the order.
	last  *publicid.Post
	tier  int64
	value any
	// revenue is the value if the list is ordered by revenue. Unpaid is true in the second step of
	// that list.
	revenue int64
	unpaid  bool

	// These fields are for a list in the order of changes.
	sync page.Sync
	at   page.SyncPlace
}

// boardSorts are the orders of a board's list, allSorts those of the organization's list.
var (
	boardSorts = []string{sortRelevance, sortNewest, sortVotes, sortActive, sortRevenue, sortUpdated}
	allSorts   = []string{sortNewest, sortUpdated}
)

// check parses the query for the list with this name.
func (in PostQuery) check(name string, on publicid.Board, sorts []string) (checkedPostQuery, error) {
	var bad problem.Fields
	out := checkedPostQuery{
		sort: sortNewest, limit: in.Size(&bad, page.Standard, page.Max), memory: in.Memory, tier: titleTier, sync: in.Sync,
	}
	if in.Asked() {
		out.sort = sortUpdated
	}
	if in.Q != nil {
		out.q, out.sort = *in.Q, sortRelevance
		bad.Text("q", *in.Q, 1, page.MaxSearch)
	}
	if in.Statuses != nil {
		out.statuses = statuses(&bad, *in.Statuses)
	}
	if in.TagIDs != nil {
		bad.Items("tagIds", *in.TagIDs, maxPostTags)
		out.tags = tagIDs(&bad, *in.TagIDs)
	}
	if in.ContactID != nil {
		id := publicid.Read[publicid.Contact](*in.ContactID)
		out.contact = &id
	}
	if in.Sort != nil {
		out.sort = *in.Sort
	}
	in.checkCurrency(&bad, out.sort)
	if in.Currency != nil {
		out.currency = *in.Currency
	}
	in.Sort = &out.sort
	out.list = page.ListOf(name, on, in)
	in.Check(&bad, out.sort == sortUpdated)
	if in.UpdatedSince != nil && out.sort != sortUpdated {
		bad.Add("updatedSince", "updated", "is for the order updated")
	}
	switch {
	case !slices.Contains(sorts, out.sort):
		bad.Add("sort", "enum", "must be one of %s", strings.Join(sorts, ", "))
	case out.sort == sortUpdated && in.Q != nil:
		bad.Add("sort", "updated", "a search has no order of changes")
	case out.sort == sortRelevance && in.Q == nil:
		bad.Add("sort", "relevance", "relevance needs a q to be relevant to")
	default:
		out.readCursor(&bad, in.Query)
	}
	return out, bad.Err()
}

func (in *checkedPostQuery) readCursor(bad *problem.Fields, q page.Query) {
	var last publicid.Post
	var ok bool
	switch in.sort {
	case sortUpdated:
		in.at = q.SyncPlace(bad, in.list)
	case sortVotes:
		in.value, ok = page.ByNumber.After(bad, in.list, q, &last)
	case sortRevenue:
		if in.revenue, ok = page.ByNumber.After(bad, in.list, q, &last); in.revenue < 0 {
			page.BadCursor(bad)
		}
	case sortActive:
		in.value, ok = page.ByTime.After(bad, in.list, q, &last)
	case sortRelevance:
		if in.tier, ok = page.ByNumber.After(bad, in.list, q, &last); !ok {
			in.tier = titleTier
		}
		if in.tier != titleTier && in.tier != textTier {
			page.BadCursor(bad)
		}
	default:
		in.last = page.After[publicid.Post](bad, in.list, q)
	}
	if q.Cursor != nil {
		in.cursor = *q.Cursor
	}
	if ok {
		in.last = &last
	}
}

// statuses parses the statuses of a filter.
func statuses(bad *problem.Fields, given []string) []post.Status {
	bad.Items("status", given, len(Statuses))
	out := make([]post.Status, len(given))
	for i, v := range given {
		if out[i] = post.Status(v); post.StatusValidator(out[i]) != nil {
			bad.Add(problem.Item("status", i), "enum", "%s", statusWords)
		}
	}
	return out
}
