package page

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// Descending is an ORDER BY clause by columns of a table, largest first.
func Descending(table string, columns ...string) string {
	terms := make([]string, len(columns))
	for i, column := range columns {
		terms[i] = table + "." + column + " DESC"
	}
	return strings.Join(terms, ", ")
}

// mostAlongBoard is the size of the largest page plus one row, which shows that there is a next
// page.
const mostAlongBoard = 101

// Extent is how much of a row was read. Every row type of a Reader embeds it.
type Extent struct {
	// Bytes is the size of the row's large columns as text.
	Bytes int
	// Whole is true if the large columns were read. Otherwise they are empty.
	Whole bool
}

// Read returns how much of the row was read.
func (e *Extent) Read() Extent { return *e }

func (e *Extent) extent() *Extent { return e }

// Reader reads pages of lists from a table. It needs one statement for a page. Ent would
// need several, and some hundred microseconds more.
//
// T is a struct that embeds the table's entity and Extent, and has a field for each further
// column. P is the entity's predicate.
type Reader[T any, P ~func(*sql.Selector)] struct {
	table   string
	columns []string
	fields  postgres.Fields
	// statement has placeholders for the order of the rows, the number of bytes of large
	// columns to read, the list, and its further columns.
	statement string
	// one reads a row of an organization by its id.
	one string
}

// Expression is a computed column. Its SQL may refer to the table.
type Expression struct{ Column, SQL string }

// NewReader makes a Reader for the table and columns of an entity of Ent. Columns of
// text, JSON or bytes that may be large are also listed in large.
func NewReader[T any, P ~func(*sql.Selector)](table string, columns, large []string, also ...Expression) Reader[T, P] {
	r := Reader[T, P]{table: table, fields: postgres.FieldsOf[T]()}
	var plain, read, sizes []string
	for _, column := range columns {
		as := table + "." + column
		plain = append(plain, as)
		if slices.Contains(large, column) {
			sizes = append(sizes, fmt.Sprintf("coalesce(octet_length(%s), 0)::bigint", r.asText(column, as)))
			as = fmt.Sprintf("CASE WHEN @so_far <= %%[2]d THEN %s END AS %s", as, column)
		}
		r.columns, read = append(r.columns, column), append(read, as)
	}
	for _, e := range also {
		as := e.SQL + " AS " + e.Column
		r.columns, plain, read = append(r.columns, e.Column), append(plain, as), append(read, as)
	}
	for _, column := range r.columns {
		if r.fields[column] == nil {
			panic(fmt.Sprintf("%s has no field for the column %s", reflect.TypeFor[T](), column))
		}
	}
	// IS NOT DISTINCT FROM uses no index. On an empty database Postgres would keep a plan with another
	// index of the organization, which leads to all of its rows.
	r.one = fmt.Sprintf("SELECT %s, 0::bigint FROM %s WHERE organization_id IS NOT DISTINCT FROM $1 AND id = $2", strings.Join(plain, ", "), table)
	// The statement measures rows only after the LIMIT. To measure a row that is only sorted or
	// skipped, the database would have to read all of it.
	r.statement = strings.NewReplacer("@so_far", fmt.Sprintf("(sum(%s) OVER list)::bigint", strings.Join(sizes, " + "))).Replace(
		"SELECT " + strings.Join(read, ", ") + "%[4]s, @so_far FROM (%[3]s) AS " + table +
			" WINDOW list AS (ORDER BY %[1]s ROWS UNBOUNDED PRECEDING) ORDER BY %[1]s")
	return r
}

// asText is the form in which a large column is measured. Bytes are measured as they are, because as
// text they would be twice as long.
func (r Reader[T, P]) asText(column, as string) string {
	if reflect.TypeFor[T]().FieldByIndex(r.fields[column]).Type == reflect.TypeFor[[]byte]() {
		return as
	}
	return as + "::text"
}

// Selection selects the rows of a table to read.
type Selection[P ~func(*sql.Selector)] struct {
	Where []P
	// Order is SQL, with the table's name before each column of the table.
	Order string
	// Also are the columns that the list has in addition to the table's.
	Also          []string
	Limit, Offset int
	// Most is how many bytes of large columns to read. The row that exceeds it, and all rows
	// after that, are read without their large columns.
	Most int
	// alongBoard is the board whose index the list follows, see AlongBoard.
	AlongBoard *publicid.Board
}

// Read reads rows of the context's organization. Postgres plans the statement for its arguments, as
// it does for the queries of Lists. A list that is AlongBoard keeps its plan instead.
func (r Reader[T, P]) Read(ctx context.Context, s *postgres.DB, p Selection[P]) ([]*T, error) {
	list := sql.Dialect(dialect.Postgres).Select().From(sql.Table(r.table))
	list.SetTotal(1) // the arguments begin at $2, because DB.Query binds the organization as $1
	scope(list, p.AlongBoard)
	for _, where := range p.Where {
		where(list)
	}
	list.OrderExpr(sql.Expr(p.Order))
	text, args := list.Query()
	if err := list.Err(); err != nil {
		return nil, errors.Wrap(err, "write the query of a page")
	}
	// Ent would write the numbers into the text, which would make hundreds of different texts.
	first, end := fmt.Sprintf(" LIMIT $%d", len(args)+2), ""
	args = append(args, p.Limit)
	if p.AlongBoard != nil {
		// Postgres keeps a generic plan only if it looks no worse than a plan for the arguments.
		// Without a literal limit, a generic plan expects a tenth of the board.
		first, end = fmt.Sprintf(" LIMIT %d", mostAlongBoard), first
	} else {
		first += fmt.Sprintf(" OFFSET %d", p.Offset)
		args = append([]any{pgx.QueryExecModeCacheDescribe}, args...)
	}
	also := ""
	for _, column := range p.Also {
		also += ", " + r.table + "." + column
	}
	text = fmt.Sprintf(r.statement, p.Order, p.Most, text+first, also) + end
	return r.read(ctx, s, slices.Concat(r.columns, p.Also), p.Most, text, args...)
}

// scope limits a list to the organization. For a list of one board it checks only the board, because the
// foreign keys keep a board's rows in the board's organization.
func scope(list *sql.Selector, board *publicid.Board) {
	if board == nil {
		list.Where(ofOrganization(list))
		return
	}
	own := sql.Dialect(dialect.Postgres).SelectExpr(sql.Raw("1")).From(sql.Table("boards"))
	list.Where(sql.Exists(own.Where(sql.And(ofOrganization(own), sql.EQ(own.C("id"), *board)))))
}

func ofOrganization(s *sql.Selector) *sql.Predicate {
	return sql.P(func(b *sql.Builder) { b.Ident(s.C(postgres.OrganizationColumn)).WriteString(" = $1") })
}

// One reads the row with this id that belongs to the organization. It returns nil if there is none.
func (r Reader[T, P]) One(ctx context.Context, s *postgres.DB, id pgtype.UUID) (*T, error) {
	found, err := r.read(ctx, s, r.columns, 0, r.one, id)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// read runs a query.
func (r Reader[T, P]) read(ctx context.Context, s *postgres.DB, columns []string, most int, text string, args ...any) ([]*T, error) {
	rows, err := s.Query(ctx, text, args...)
	if err != nil {
		return nil, errors.Wrap(err, "ask for the rows")
	}
	return r.scan(rows, columns, most)
}

// scan reads each row into the same variable and copies it from there, so that the targets of the
// columns are determined only once.
func (r Reader[T, P]) scan(rows pgx.Rows, columns []string, most int) ([]*T, error) {
	var (
		row           T
		soFar, before int64
		found         []*T
		fields        = reflect.ValueOf(&row).Elem()
		targets       = make([]any, 0, len(columns)+1)
		extent        = any(&row).(interface{ extent() *Extent }).extent()
	)
	for _, column := range columns {
		targets = append(targets, target(fields.FieldByIndex(r.fields[column])))
	}
	_, err := pgx.ForEachRow(rows, append(targets, &soFar), func() error {
		extent.Bytes, extent.Whole = int(soFar-before), soFar <= int64(most)
		before = soFar
		own := row
		found = append(found, &own)
		return nil
	})
	if err != nil {
		return nil, errors.Wrap(err, "read the rows")
	}
	return found, nil
}

// target is the destination into which pgx scans a column.
func target(field reflect.Value) any {
	switch at := field.Addr().Interface().(type) {
	case *json.RawMessage:
		return (*[]byte)(at) // the bytes as they are stored
	case *string:
		return (*textOrNothing)(at)
	default:
		return at
	}
}

// textOrNothing is a text that is "" if the column was not read.
type textOrNothing string

// ScanText implements pgtype.TextScanner.
func (t *textOrNothing) ScanText(v pgtype.Text) error {
	*t = textOrNothing(v.String)
	return nil
}
