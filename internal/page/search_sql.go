package page

import (
	"context"
	"regexp"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"earshot/internal/postgres"
)

var (
	hyphens = regexp.MustCompile(`-{2,}`)
	// Postgres skips the characters between these hyphens and reads each hyphen as a NOT.
	exclusions = regexp.MustCompile(`-(?:[^\pL\pM\pN"-]+-)+`)
)

// Searched is a search that websearch_to_tsquery can read. That function nests a NOT for each consecutive
// hyphen, and returns an error at the 33rd. A row of hyphens is a dash or a Markdown rule, so it excludes
// nothing. Several hyphens that exclude the same word become one.
func Searched(q string) string {
	return exclusions.ReplaceAllString(hyphens.ReplaceAllString(q, " "), " -")
}

// The error of websearch_to_tsquery has no SQLSTATE of its own, only that of all internal errors. Postgres
// does not translate the messages of these.
const (
	internalError = "XX000"
	stackTooSmall = "tsquery stack too small"
)

// UnreadableSearch reports whether an error says that Postgres could not read the words of a search.
func UnreadableSearch(err error) bool {
	var failed *pgconn.PgError
	return errors.As(err, &failed) && failed.Code == internalError && failed.Message == stackTooSmall
}

// The words of a search go between these two. The subselect makes Postgres parse them once a statement.
const (
	WantedSQL    = "(SELECT (SELECT websearch_to_tsquery('english', searchable("
	WantedEndSQL = "))) AS wanted) w"
)

// Holding runs a query for the ids of rows that match a search. Postgres plans it for its arguments.
func Holding(ctx context.Context, s *postgres.DB, query string, args ...any) (postgres.UuidArray, error) {
	rows, err := s.Query(ctx, query, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
	if err != nil {
		return nil, errors.Wrap(err, "search")
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[pgtype.UUID])
	if err != nil {
		return nil, errors.Wrap(err, "search")
	}
	return ids, nil
}

// oneOf selects the rows with these ids, of which there may be thousands. It takes the place of the
// table, so that Postgres looks the rows up by id before it checks other conditions. The planner
// overestimates how selective a cursor is, and would otherwise read the rest of the list.
func oneOf(ids postgres.UuidArray) func(*sql.Selector) {
	return inPlaceOfTable(func(rows *sql.Selector) {
		rows.Where(sql.P(func(b *sql.Builder) {
			b.Ident(rows.C("id")).WriteString(" = ANY (").Arg(ids).WriteString("::uuid[])")
		}))
		// OFFSET 0 keeps the planner from merging it with the outer query.
		rows.Offset(0)
	})
}

// First selects the first n rows of a list: of the rows that match all predicates, in the order of the
// list. It takes the place of the table, so that Postgres reads the list in order and only as far as a
// query needs.
func First[P ~func(*sql.Selector)](n int, of []P, order string) func(*sql.Selector) {
	return inPlaceOfTable(func(rows *sql.Selector) {
		for _, p := range of {
			p(rows)
		}
		rows.OrderExpr(sql.Expr(order)).Limit(n)
	})
}

func inPlaceOfTable(choose func(rows *sql.Selector)) func(*sql.Selector) {
	return func(s *sql.Selector) {
		rows := sql.Dialect(dialect.Postgres).Select().From(sql.Table(s.TableName()))
		choose(rows)
		s.From(rows.As(s.TableName()))
	}
}
