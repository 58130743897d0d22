package store

import (
	"entgo.io/ent/dialect/sql"
)

// Size is the name of the value that Sized puts beside a row.
const Size = "size"

// Sized is an order of a query that changes no order: it adds how many bytes the
// columns, of text or JSON, take in a row. The database reads the columns of each row
// that the query comes across, so it is for rows that are asked for by their ids.
func Sized(columns ...string) func(*sql.Selector) {
	return func(s *sql.Selector) {
		s.AppendSelectExprAs(sql.ExprFunc(func(b *sql.Builder) {
			for i, column := range columns {
				if i > 0 {
					b.WriteString(" + ")
				}
				b.WriteString("coalesce(octet_length(").Ident(s.C(column)).WriteString("::text), 0)::bigint")
			}
		}), Size)
	}
}
