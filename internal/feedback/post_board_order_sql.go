package feedback

import (
	"time"

	"entgo.io/ent/dialect/sql"

	"earshot/ent/db/post"
	"earshot/ent/db/predicate"
	"earshot/internal/page"
	"earshot/internal/publicid"
)

// AlongBoard lists the live posts of a board, ordered by the given columns, largest first. The list
// starts after the given values, or at the beginning without values.
//
// Postgres keeps the plan of the statement, and that plan is the best one for every board. The
// conditions are a range of the index that begins with the board and continues with the columns,
// and no other index has that order. With an equality, or with a condition on the organization, the
// planner would sometimes expect few posts and sort them all.
func AlongBoard(on publicid.Board, by []string, behind []any) page.Selection[predicate.Post] {
	columns := append([]string{post.FieldBoardID}, by...)
	return page.Selection[predicate.Post]{
		Order: page.Descending(post.Table, columns...), AlongBoard: &on,
		Where: []predicate.Post{post.DeletedAtIsNil(), func(s *sql.Selector) {
			s.Where(sql.GTE(s.C(post.FieldBoardID), on)).Where(sql.LTE(s.C(post.FieldBoardID), on))
			if behind != nil {
				s.Where(lessThanSelected(s.Columns(columns...), append([]any{on}, behind...)))
			}
		}},
	}
}

// lessThanSelected is the condition that a row of columns is less than the values. The values are
// selected, like the arrays in seeSQL, so that Postgres keeps one plan for all of them.
func lessThanSelected(columns []string, values []any) *sql.Predicate {
	return sql.P(func(b *sql.Builder) {
		b.Wrap(func(b *sql.Builder) { b.IdentComma(columns...) }).WriteString(" < ").Wrap(func(b *sql.Builder) {
			for i, value := range values {
				if i > 0 {
					b.Comma()
				}
				b.WriteString("(SELECT ").Arg(value).WriteString("::" + typeOf(value) + ")")
			}
		})
	})
}

// typeOf is the Postgres type of a value that a list is ordered by.
func typeOf(value any) string {
	switch value.(type) {
	case int64:
		return "bigint"
	case time.Time:
		return "timestamptz"
	default: // an id
		return "uuid"
	}
}
