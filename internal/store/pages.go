package store

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
)

// Extent says how much of a row was read. What a PageReader reads embeds it.
type Extent struct {
	// Bytes is what the row's large columns take, as text.
	Bytes int
	// Whole says that they were read; else they are empty.
	Whole bool
}

// Read says how much of the row was read.
func (e *Extent) Read() Extent { return *e }

func (e *Extent) extent() *Extent { return e }

// PageReader reads pages of lists from a table, by one statement each and without Ent,
// which would take several and some hundred microseconds more. T is a struct that embeds
// the table's entity and Extent, with a field for each further column, and P is the
// entity's predicate.
type PageReader[T any, P ~func(*sql.Selector)] struct {
	entity, table string
	columns       []string
	fields        map[string][]int
	// statement has places for the rows' order, how many bytes of large columns to read,
	// the list, and columns that the list has beside the table's.
	statement string
}

// expression is a column of what is read that isn't one of the table: SQL that may refer
// to the table.
type expression struct{ column, sql string }

// newPageReader makes one for an entity of Ent, with its table and columns. Large are those
// of the columns, of text or JSON, that may be large.
func newPageReader[T any, P ~func(*sql.Selector)](entity, table string, columns, large []string, also ...expression) PageReader[T, P] {
	r := PageReader[T, P]{entity: entity, table: table, fields: fieldsOf(reflect.TypeFor[T]())}
	var read, sizes []string
	for _, column := range columns {
		as := table + "." + column
		if slices.Contains(large, column) {
			sizes = append(sizes, fmt.Sprintf("coalesce(octet_length(%s::text), 0)::bigint", as))
			as = fmt.Sprintf("CASE WHEN %s.bytes_so_far <= %%[2]d THEN %s END AS %s", table, as, column)
		}
		r.columns, read = append(r.columns, column), append(read, as)
	}
	for _, e := range also {
		r.columns, read = append(r.columns, e.column), append(read, e.sql+" AS "+e.column)
	}
	for _, column := range r.columns {
		if r.fields[column] == nil {
			panic(fmt.Sprintf("%s has no field for the column %s", reflect.TypeFor[T](), column))
		}
	}
	// Rows are measured only once the list is cut: to measure the size of a row that is
	// only sorted or skipped, the database would read it whole.
	r.statement = fmt.Sprintf(`SELECT %[2]s%%[4]s, %[1]s.bytes_so_far
FROM (SELECT %[1]s.*, sum(%[3]s) OVER (ORDER BY %%[1]s ROWS UNBOUNDED PRECEDING)::bigint AS bytes_so_far
  FROM (%%[3]s) AS %[1]s) AS %[1]s
ORDER BY %%[1]s`, table, strings.Join(read, ", "), strings.Join(sizes, " + "))
	return r
}

// PageOf says which rows of a table to read.
type PageOf[P ~func(*sql.Selector)] struct {
	Where []P
	// Order is SQL, with the table's name before each column.
	Order string
	// Also are columns that the list has beside the table's.
	Also          []string
	Limit, Offset int
	// Most is how many bytes of large columns to read. The rows from that on are read
	// without them.
	Most int
}

// Read reads rows of the context's organization. It is planned anew for its arguments, as
// the queries of Lists are.
func (r PageReader[T, P]) Read(ctx context.Context, s *Store, p PageOf[P]) ([]*T, error) {
	limit, all, err := limitOf(ctx, r.entity)
	if err != nil {
		return nil, err
	}
	list := sql.Dialect(dialect.Postgres).Select().From(sql.Table(r.table))
	if !all {
		limit(list)
	}
	for _, where := range p.Where {
		where(list)
	}
	list.OrderExpr(sql.Expr(p.Order)).Limit(p.Limit)
	if p.Offset > 0 {
		list.Offset(p.Offset)
	}
	text, args := list.Query()
	if err := list.Err(); err != nil {
		return nil, errors.Wrap(err, "write the query of a page")
	}
	also := ""
	for _, column := range p.Also {
		also += ", " + r.table + "." + column
	}
	text = fmt.Sprintf(r.statement, p.Order, p.Most, text, also)
	rows, err := s.pool.Query(ctx, text, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
	if err != nil {
		return nil, errors.Wrap(err, "read a page")
	}
	return r.scan(rows, slices.Concat(r.columns, p.Also), p.Most)
}

// scan reads the rows into one place and copies them from there, so that what belongs
// where is found out once.
func (r PageReader[T, P]) scan(rows pgx.Rows, columns []string, most int) ([]*T, error) {
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
		return nil, errors.Wrap(err, "read a page")
	}
	return found, nil
}

// target is where pgx puts a column.
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

// textOrNothing is a text that is "" where it wasn't read.
type textOrNothing string

// ScanText reads it.
func (t *textOrNothing) ScanText(v pgtype.Text) error {
	*t = textOrNothing(v.String)
	return nil
}

// fieldsOf finds the fields of a struct, and of what it embeds, by the names that their
// columns have.
func fieldsOf(row reflect.Type) map[string][]int {
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(row) {
		if f.IsExported() && !f.Anonymous {
			fields[fieldColumn(f)] = f.Index
		}
	}
	return fields
}

// fieldColumn is the name in Ent's tag, or the field's own in small letters.
func fieldColumn(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
		return name
	}
	return strings.ToLower(f.Name)
}
