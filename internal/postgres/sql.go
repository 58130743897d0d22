package postgres

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"earshot/ent/db"
	"earshot/internal/publicid"
)

// Hand-written SQL of a feature runs in the organization of the context, which is $1 of the statement.
// The arguments of the caller begin at $2. Statements that touch rows of several organizations go
// through Across. internal/architecture lists the functions that may do that.

// bound returns the arguments with the organization of the context in front. A pgx.QueryExecMode, which
// pgx takes before the arguments, stays first.
func bound(ctx context.Context, args []any) ([]any, error) {
	of, err := organizationOf(ctx)
	if err != nil {
		return nil, err
	}
	at := 0
	if len(args) > 0 {
		if _, ok := args[0].(pgx.QueryExecMode); ok {
			at = 1
		}
	}
	// pgx has a binary form for this type. For a uuid.UUID it makes an error, and then parses the text form.
	return slices.Insert(slices.Clone(args), at, any(of)), nil
}

// Query runs a query. It waits for a connection no longer than ConnectionTimeout.
func (d *DB) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	args, err := bound(ctx, args)
	if err != nil {
		return nil, err
	}
	return d.query(ctx, query, args...)
}

func (d *DB) query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	conn, err := d.acquire(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		conn.Release()
		return nil, err
	}
	return &borrowed{rows, conn}, nil
}

// borrowed are rows that give their connection back when they are closed. pgx closes them after the last
// one.
type borrowed struct {
	pgx.Rows
	conn *pgxpool.Conn
}

func (b *borrowed) Next() bool {
	if b.Rows.Next() {
		return true
	}
	b.Close()
	return false
}

func (b *borrowed) Scan(destinations ...any) error {
	err := b.Rows.Scan(destinations...)
	if err != nil {
		b.Close()
	}
	return err
}

func (b *borrowed) Close() {
	b.Rows.Close()
	if b.conn != nil {
		b.conn.Release()
		b.conn = nil
	}
}

// QueryRow reads one row into the destinations. It returns pgx.ErrNoRows if there is none.
func (d *DB) QueryRow(ctx context.Context, destinations []any, query string, args ...any) error {
	rows, err := d.Query(ctx, query, args...)
	return firstRow{rows, err}.Scan(destinations...)
}

// firstRow is a pgx.Row.
type firstRow struct {
	rows pgx.Rows
	err  error
}

func (r firstRow) Scan(destinations ...any) error {
	if r.err != nil {
		return r.err
	}
	rows := r.rows
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := rows.Scan(destinations...); err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

// Exec runs a statement.
func (d *DB) Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error) {
	args, err := bound(ctx, args)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	conn, err := d.acquire(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer conn.Release()
	return conn.Exec(ctx, statement, args...)
}

// QueryTx runs a query in a transaction of InTx, and passes its rows to read. The query shares a round
// trip with the statements before it that wait, for example BEGIN.
func QueryTx(ctx context.Context, tx *db.Tx, read func(pgx.Rows) error, query string, args ...any) error {
	args, err := bound(ctx, args)
	if err != nil {
		return err
	}
	return look(ctx, tx, read, query, args...)
}

// EachRow is for QueryTx. It scans each row into the destinations, which the next row overwrites, and
// calls one.
func EachRow(destinations []any, one func()) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, destinations, func() error { one(); return nil })
		return err
	}
}

// Fields are the indices of the fields of a struct that hold columns, by the names of the columns.
type Fields map[string][]int

// FieldsOf finds the fields of a row, including those of embedded structs. The name of a column is in the
// field's json tag, which Ent sets, or it is the field's name in lower case. A caller keeps the result, because
// the search takes more time than the scan of a row.
func FieldsOf[Row any]() Fields {
	fields := Fields{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Row]()) {
		if f.IsExported() && !f.Anonymous {
			fields[columnOf(f)] = f.Index
		}
	}
	return fields
}

func columnOf(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
		return name
	}
	return strings.ToLower(f.Name)
}

// In returns pointers to the fields of a row that hold the columns, for a scan. The row is a pointer.
func (f Fields) In(row any, columns []string) []any {
	pointers, of := make([]any, len(columns)), reflect.ValueOf(row).Elem()
	for i, column := range columns {
		pointers[i] = of.FieldByIndex(f[column]).Addr().Interface()
	}
	return pointers
}

// All is for QueryTx. It appends the rows to a slice; scan reads one of them.
func All[T any](into *[]T, scan pgx.RowToFunc[T]) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		all, err := pgx.AppendRows(*into, rows, scan)
		*into = all
		return err
	}
}

// ExecTx runs a statement in a transaction, and returns the number of changed rows. A statement that waits
// for the commit reports none.
func ExecTx(ctx context.Context, tx *db.Tx, statement string, args ...any) (int, error) {
	args, err := bound(ctx, args)
	if err != nil {
		return 0, err
	}
	done, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	changed, err := done.RowsAffected()
	return int(changed), err
}

// Across is the way to rows of all organizations, for work that belongs to none or to many: the delivery
// of webhooks, the sweep, the retention, authentication, the command line.
type Across struct {
	db     *DB
	reason string
}

// Across returns the way to rows of all organizations. The reason is for the reader, and for the errors of
// CollectAcross.
func (d *DB) Across(reason string) Across { return Across{d, reason} }

// Query runs a query. It waits for a connection no longer than ConnectionTimeout, as the other methods
// do.
func (a Across) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	return a.db.query(ctx, query, args...)
}

// QueryRow runs a query with one row.
func (a Across) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	rows, err := a.Query(ctx, query, args...)
	return firstRow{rows, err}
}

// Exec runs a statement.
func (a Across) Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error) {
	conn, err := a.db.acquire(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer conn.Release()
	return conn.Exec(ctx, statement, args...)
}

// SendBatch sends statements in one round trip.
func (a Across) SendBatch(ctx context.Context, statements *pgx.Batch) error {
	conn, err := a.db.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return conn.SendBatch(ctx, statements).Close()
}

// Context lifts the limit of Ent's client to the organization of the context.
func (a Across) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, scopeKey{}, scope{system: a.reason})
}

// CollectAcross returns the rows of a query. The reason of a is in the text of an error, for example
// "find overdue entries".
func CollectAcross[T any](ctx context.Context, a Across, query string, read pgx.RowToFunc[T], args ...any) ([]T, error) {
	rows, err := a.Query(ctx, query, args...)
	if err != nil {
		return nil, errors.Wrap(err, a.reason)
	}
	found, err := pgx.CollectRows(rows, read)
	if err != nil {
		return nil, errors.Wrap(err, a.reason)
	}
	return found, nil
}

// RowID is the id of a row whose organization OrganizationOf finds.
type RowID interface {
	publicid.APIKey | publicid.ChangelogEntry | publicid.ContactBackfill | publicid.Delivery | publicid.Interaction |
		publicid.Recovery | publicid.SubjectRequest | publicid.Webhook
	UUID() uuid.UUID
}

func tableOf(id any) string {
	switch id.(type) {
	case publicid.APIKey:
		return "api_keys"
	case publicid.ChangelogEntry:
		return "changelog_entries"
	case publicid.ContactBackfill:
		return "contact_backfills"
	case publicid.Delivery:
		return "deliveries"
	case publicid.Interaction:
		return "interactions"
	case publicid.Recovery:
		return "recoveries"
	case publicid.SubjectRequest:
		return "subject_requests"
	case publicid.Webhook:
		return "webhooks"
	default:
		panic(fmt.Sprintf("no table for %T", id)) // a RowID without a row here
	}
}

// InOrganizationOf limits a context to the organization of a row, for work that follows an id: a workflow,
// or a command of an operator. Without the row it returns an error for which db.IsNotFound is true.
func InOrganizationOf[ID RowID](ctx context.Context, d *DB, id ID) (context.Context, error) {
	var of publicid.Organization
	rows, err := d.query(ctx, "SELECT organization_id FROM "+tableOf(id)+" WHERE id = $1", id.UUID())
	err = firstRow{rows, err}.Scan(&of)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, &db.NotFoundError{}
	}
	if err != nil {
		return nil, errors.Wrap(err, "find the organization")
	}
	return WithOrganization(ctx, of), nil
}
