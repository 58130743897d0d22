package feedback

import (
	"context"
	"regexp"

	"earshot/ent/db/post"
	"earshot/ent/db/predicate"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// Revenue is the monthly payment of the contacts who voted for a post, in one currency.
type Revenue struct {
	Currency string
	MRRCents int64
}

var currencyCode = regexp.MustCompile("^[A-Z]{3}$")

// checkCurrency requires a currency for the list by revenue, because amounts in different
// currencies cannot be added.
func (in PostQuery) checkCurrency(bad *problem.Fields, sort string) {
	switch {
	case in.Currency == nil && sort == sortRevenue:
		bad.Add("currency", "required", "is required to sort by revenue")
	case in.Currency != nil && !currencyCode.MatchString(*in.Currency):
		bad.Add("currency", "pattern", "must be three uppercase letters (ISO 4217)")
	case in.Currency != nil && sort != sortRevenue:
		bad.Add("currency", "revenue", "is for the sort by revenue only")
	}
}

// byRevenue lists the posts by revenue, in two steps. The first step reads the posts with revenue,
// along the index of revenues. The second step reads the other posts, by their creation.
func (s *Service) byRevenue(
	ctx context.Context, on publicid.Board, in checkedPostQuery, limit int,
) (rows []*listedPost, stopped **listedPost, err error) {
	if in.last == nil || in.revenue > 0 {
		rows, stopped, err = s.listed(ctx, on, in, limit)
		if err != nil || stopped != nil || len(rows) >= limit {
			return rows, stopped, err
		}
		in.last = nil
	}
	in.unpaid = true
	rest, stopped, err := s.listed(ctx, on, in, limit-len(rows))
	return append(rows, rest...), stopped, err
}

// revenueRows returns the list for the query's current step.
func (in *checkedPostQuery) revenueRows(on publicid.Board) page.Selection[predicate.Post] {
	where := append(in.filters(), post.BoardID(on), post.DeletedAtIsNil())
	if !in.unpaid {
		return page.Selection[predicate.Post]{
			Where: append(where, PaidFor(on, in.currency, in.revenue, in.last)),
			Order: ByPostRevenue, Also: []string{RevenueColumn},
		}
	}
	if in.last != nil {
		where = append(where, post.IDLT(*in.last))
	}
	return page.Selection[predicate.Post]{Where: append(where, notPaidFor(on, in.currency)), Order: newestPosts}
}

// tellRevenue sets the revenue of the posts in whole, a page of the posts in listed.
func (in *checkedPostQuery) tellRevenue(listed []*listedPost, whole page.Page[*Post]) {
	if in.sort != sortRevenue {
		return
	}
	revenue := map[publicid.Post]int64{}
	for _, p := range listed {
		revenue[p.ID] = p.Revenue
	}
	for _, p := range whole.Items {
		p.Revenue = &Revenue{Currency: in.currency, MRRCents: revenue[p.ID]}
	}
}
