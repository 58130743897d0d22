package store

import (
	"context"
	"slices"
	"strings"
	"sync"

	atlas "ariga.io/atlas/sql/schema"
	"ariga.io/atlas/sql/sqltool"
	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"
	"github.com/go-faster/errors"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"earshot/ent/db/migrate"
	"earshot/ent/migrations"
)

// ErrSchemaBehind is returned by CheckSchema when migrations are missing.
var ErrSchemaBehind = errors.New("the database schema is behind: run `earshot migrate`")

func (s *Store) migrations() (*goose.Provider, error) {
	// The lock is Postgres's advisory one, held by the session: two processes
	// that start together apply each migration once.
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, errors.Wrap(err, "make the migration lock")
	}
	p, err := goose.NewProvider(goose.DialectPostgres, s.sql, migrations.FS, goose.WithSessionLocker(locker))
	if err != nil {
		return nil, errors.Wrap(err, "load the migrations")
	}
	return p, nil
}

// Migrate brings the schema up to date and returns the names of what it applied.
func (s *Store) Migrate(ctx context.Context) ([]string, error) {
	p, err := s.migrations()
	if err != nil {
		return nil, err
	}
	results, err := p.Up(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "apply migrations")
	}
	applied := make([]string, 0, len(results))
	for _, r := range results {
		applied = append(applied, r.Source.Path)
	}
	return applied, nil
}

// CheckSchema returns ErrSchemaBehind when a migration of this program isn't
// applied. A schema that is ahead is fine: that is a rolling update.
func (s *Store) CheckSchema(ctx context.Context) error {
	// Goose makes its table where there is none, and a check changes nothing.
	var known bool
	if err := s.pool.QueryRow(ctx, "SELECT to_regclass('goose_db_version') IS NOT NULL").Scan(&known); err != nil {
		return errors.Wrap(err, "look for the schema version")
	}
	if !known {
		return ErrSchemaBehind
	}
	p, err := s.migrations()
	if err != nil {
		return err
	}
	pending, err := p.HasPending(ctx)
	if err != nil {
		return errors.Wrap(err, "read the schema version")
	}
	if pending {
		return ErrSchemaBehind
	}
	return nil
}

// Diff writes a migration into dir that takes the schema from what dir's files
// build to what ent/schema declares. It replays them on the database of the
// store, which must be empty. Without a difference it writes nothing and
// returns atlas's migrate.ErrNoPlan.
func (s *Store) Diff(ctx context.Context, dir, name string) error {
	files, err := sqltool.NewGooseDir(dir)
	if err != nil {
		return errors.Wrap(err, "open the migrations")
	}
	m, err := schema.NewMigrate(entsql.OpenDB(dialect.Postgres, s.sql),
		schema.WithDir(files),
		schema.WithFormatter(sqltool.GooseFormatter),
		schema.WithDialect(dialect.Postgres),
		schema.WithMigrationMode(schema.ModeReplay),
		schema.WithDropColumn(true),
		schema.WithDropIndex(true),
		schema.WithErrNoPlan(true),
		schema.WithDiffHook(keepHandWritten),
	)
	if err != nil {
		return errors.Wrap(err, "prepare the comparison")
	}
	return m.NamedDiff(ctx, name, tables()...)
}

// tables are the declared tables with what Ent can't declare: a foreign key
// between two tables of an organization includes the organization, so that no
// row can point at another organization's. A table without such a key gets one
// to its organization; the others have it through their parent, and a second
// check would only make every write lock the organization's row.
//
// A table's reference to itself isn't declared at all but written by hand into
// the migration and named <table>_self_…: the comparison creates tables before
// the unique indexes that such a key needs. keepHandWritten guards them.
var tables = sync.OnceValue(func() []*schema.Table {
	for _, t := range migrate.Tables {
		organization, ok := columnOf(t, organizationColumn)
		if !ok {
			continue
		}
		covered := false
		for _, fk := range t.ForeignKeys {
			parent, scoped := columnOf(fk.RefTable, organizationColumn)
			if !scoped {
				continue
			}
			fk.Columns = append([]*schema.Column{organization}, fk.Columns...)
			fk.RefColumns = append([]*schema.Column{parent}, fk.RefColumns...)
			makeReferable(fk.RefTable, fk.RefColumns)
			covered = true
		}
		if covered {
			continue
		}
		t.ForeignKeys = append(t.ForeignKeys, &schema.ForeignKey{
			Symbol:     t.Name + "_organizations_organization",
			Columns:    []*schema.Column{organization},
			RefTable:   migrate.OrganizationsTable,
			RefColumns: migrate.OrganizationsTable.PrimaryKey,
			OnDelete:   schema.NoAction,
		})
	}
	return migrate.Tables
})

// byHand are the names of what migrations add by hand to declared tables, because
// Ent can't declare it: a table's reference to itself, an index on an expression.
func byHand(table, name string) bool {
	return strings.HasPrefix(name, table+"_self_") || strings.HasPrefix(name, table+"_by_")
}

// generated tells a column that Postgres works out, which Ent can't declare either.
func generated(a atlas.Attr) bool {
	_, ok := a.(*atlas.GeneratedExpr)
	return ok
}

// keepHandWritten takes the dropping of what is written by hand out of a
// comparison.
func keepHandWritten(next schema.Differ) schema.Differ {
	return schema.DiffFunc(func(current, desired *atlas.Schema) ([]atlas.Change, error) {
		changes, err := next.Diff(current, desired)
		if err != nil {
			return nil, err
		}
		return slices.DeleteFunc(changes, func(c atlas.Change) bool {
			m, ok := c.(*atlas.ModifyTable)
			if !ok {
				return false
			}
			m.Changes = slices.DeleteFunc(m.Changes, func(c atlas.Change) bool {
				switch c := c.(type) {
				case *atlas.DropForeignKey:
					return byHand(m.T.Name, c.F.Symbol)
				case *atlas.DropIndex:
					return byHand(m.T.Name, c.I.Name)
				case *atlas.DropColumn:
					return slices.ContainsFunc(c.C.Attrs, generated)
				}
				return false
			})
			return len(m.Changes) == 0
		}), nil
	})
}

func columnOf(t *schema.Table, name string) (*schema.Column, bool) {
	i := slices.IndexFunc(t.Columns, func(c *schema.Column) bool { return c.Name == name })
	if i < 0 {
		return nil, false
	}
	return t.Columns[i], true
}

// makeReferable adds the unique index that a composite foreign key needs on
// the table it points at.
func makeReferable(t *schema.Table, columns []*schema.Column) {
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	name := t.Name + "_" + strings.Join(names, "_")
	for _, existing := range t.Indexes {
		if existing.Name == name {
			return
		}
	}
	t.Indexes = append(t.Indexes, &schema.Index{Name: name, Unique: true, Columns: columns})
}
