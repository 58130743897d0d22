package feedback

import (
	"entgo.io/ent/dialect/sql"

	"earshot/ent/db/post"
	"earshot/ent/db/predicate"
	"earshot/internal/publicid"
)

// RevenueColumn is the column that PaidFor adds to a post: the sum that the contacts who voted for it pay.
// Triggers maintain it in the table post_revenues.
const RevenueColumn = "revenue"

// ByPostRevenue is the order of the posts that PaidFor finds. Revenue has no table name, because it
// is a column of "paid" inside the list, and a column of posts outside it.
const ByPostRevenue = RevenueColumn + " DESC, " + post.Table + "." + post.FieldID + " DESC"

// PaidFor selects the posts of a board whose voters bring revenue in the currency, along the index
// of revenues. If last is a post, the list continues after it.
func PaidFor(on publicid.Board, currency string, revenue int64, last *publicid.Post) predicate.Post {
	return func(s *sql.Selector) {
		s.AppendFromExpr(sql.ExprFunc(func(b *sql.Builder) {
			b.WriteString("(SELECT post_id AS paid_post_id, mrr_cents AS " + RevenueColumn + " FROM post_revenues WHERE board_id = ").Arg(on).
				WriteString(" AND currency = ").Arg(currency).WriteString(" AND mrr_cents > 0")
			if last != nil {
				b.WriteString(" AND (mrr_cents, post_id) < (").Arg(revenue).WriteString(", ").Arg(*last).WriteString(")")
			}
			b.WriteString(") AS paid")
		}))
		s.Where(sql.P(func(b *sql.Builder) { b.WriteString("paid_post_id = ").Ident(s.C(post.FieldID)) }))
	}
}

// notPaidFor selects the posts that PaidFor leaves out.
func notPaidFor(on publicid.Board, currency string) predicate.Post {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			b.WriteString("NOT EXISTS (SELECT FROM post_revenues WHERE post_id = ").Ident(s.C(post.FieldID)).
				WriteString(" AND post_revenues.board_id = ").Arg(on).WriteString(" AND currency = ").Arg(currency).WriteString(" AND mrr_cents > 0)")
		}))
	}
}
