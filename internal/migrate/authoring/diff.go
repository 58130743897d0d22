package authoring

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ariga.io/atlas/sql/migrate"
	postgresrow "ariga.io/atlas/sql/postgres"
	atlas "ariga.io/atlas/sql/schema"
	"ariga.io/atlas/sql/sqltool"
	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"
	"github.com/go-faster/errors"

	entmigrate "earshot/ent/db/migrate"
	"earshot/internal/postgres"
)

// Diff writes a migration into dir that changes the schema from the result of dir's files to the
// declarations in ent/schema. It leaves out the indexes of existing tables, which DiffIndexes
// covers. It replays the files on the store's database, which must be empty. Without a difference
// it writes nothing and returns atlas's migrate.ErrNoPlan.
func Diff(ctx context.Context, s *postgres.DB, dir, name string) error {
	return diff(ctx, s, dir, name, sqltool.GooseFormatter, structure)
}

// DiffIndexes is Diff for the indexes of existing tables. They are built concurrently with writes
// and therefore in a file without a transaction.
func DiffIndexes(ctx context.Context, s *postgres.DB, dir, name string) error {
	return diff(ctx, s, dir, name, apart{sqltool.GooseFormatter}, besideWrites)
}

func diff(ctx context.Context, s *postgres.DB, dir, name string, format migrate.Formatter, part func(atlas.Change) []atlas.Change) error {
	files, err := sqltool.NewGooseDir(dir)
	if err != nil {
		return errors.Wrap(err, "open the migrations")
	}
	there, err := files.Files()
	if err != nil {
		return errors.Wrap(err, "list the migrations")
	}
	m, err := schema.NewMigrate(entsql.OpenDB(dialect.Postgres, s.StdPool()),
		schema.WithDir(files),
		schema.WithFormatter(behind{format, there}),
		schema.WithDialect(dialect.Postgres),
		schema.WithMigrationMode(schema.ModeReplay),
		schema.WithDropColumn(true),
		schema.WithDropIndex(true),
		schema.WithErrNoPlan(true),
		schema.WithDiffHook(only(part), keepHandWritten),
	)
	if err != nil {
		return errors.Wrap(err, "prepare the comparison")
	}
	// Ent completes tables while it compares them, and another comparison may read the same tables.
	own, err := schema.CopyTables(tables())
	if err != nil {
		return errors.Wrap(err, "copy the declared tables")
	}
	return m.NamedDiff(ctx, name, own...)
}

// only restricts a comparison to a part of the changes.
func only(part func(atlas.Change) []atlas.Change) schema.DiffHook {
	return func(next schema.Differ) schema.Differ {
		return schema.DiffFunc(func(current, desired *atlas.Schema) ([]atlas.Change, error) {
			all, err := next.Diff(current, desired)
			if err != nil {
				return nil, err
			}
			var kept []atlas.Change
			for _, c := range all {
				kept = append(kept, part(c)...)
			}
			return kept, nil
		})
	}
}

// structure selects the changes that run in a transaction. New constraints are added as NOT VALID,
// because a check of all rows would hold a lock that blocks writes.
func structure(c atlas.Change) []atlas.Change {
	m, ok := c.(*atlas.ModifyTable)
	if !ok {
		return []atlas.Change{c}
	}
	m.Changes = slices.DeleteFunc(m.Changes, func(c atlas.Change) bool { return len(concurrent(c)) > 0 })
	for _, c := range m.Changes {
		switch c := c.(type) {
		case *atlas.AddForeignKey:
			c.Extra = append(c.Extra, &postgresrow.NotValid{})
		case *atlas.AddCheck:
			c.Extra = append(c.Extra, &postgresrow.NotValid{})
		}
	}
	if len(m.Changes) == 0 {
		return nil
	}
	return []atlas.Change{m}
}

// besideWrites selects the changes to indexes of existing tables.
func besideWrites(c atlas.Change) []atlas.Change {
	m, ok := c.(*atlas.ModifyTable)
	if !ok {
		return nil
	}
	var kept []atlas.Change
	for _, c := range m.Changes {
		kept = append(kept, concurrent(c)...)
	}
	if m.Changes = kept; len(kept) == 0 {
		return nil
	}
	return []atlas.Change{m}
}

// concurrent returns a change of an index as one that runs concurrently with writes.
func concurrent(c atlas.Change) []atlas.Change {
	extra := []atlas.Clause{&postgresrow.Concurrently{}}
	switch c := c.(type) {
	case *atlas.AddIndex:
		return []atlas.Change{&atlas.AddIndex{I: c.I, Extra: extra}}
	case *atlas.DropIndex:
		return []atlas.Change{&atlas.DropIndex{I: c.I, Extra: extra}}
	case *atlas.ModifyIndex:
		return []atlas.Change{&atlas.DropIndex{I: c.From, Extra: extra}, &atlas.AddIndex{I: c.To, Extra: extra}}
	}
	return nil
}

// apart writes a file without a transaction that can be repeated after an interruption.
type apart struct{ migrate.Formatter }

var repeatable = strings.NewReplacer(
	"CREATE INDEX CONCURRENTLY", "CREATE INDEX CONCURRENTLY IF NOT EXISTS",
	"CREATE UNIQUE INDEX CONCURRENTLY", "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS",
	"DROP INDEX CONCURRENTLY", "DROP INDEX CONCURRENTLY IF EXISTS",
)

func (a apart) Format(plan *migrate.Plan) ([]migrate.File, error) {
	files, err := a.Formatter.Format(plan)
	if err != nil {
		return nil, errors.Wrap(err, "write the indexes down")
	}
	for i, f := range files {
		text := "-- +goose NO TRANSACTION\n" + repeatable.Replace(string(f.Bytes()))
		files[i] = migrate.NewLocalFile(f.Name(), []byte(text))
	}
	return files, nil
}

// behind gives a file a later version than all existing files. The file with the other changes was
// written in the same second, and a file from a merge may be dated ahead of the clock.
type behind struct {
	migrate.Formatter
	there []migrate.File
}

func (b behind) Format(plan *migrate.Plan) ([]migrate.File, error) {
	files, err := b.Formatter.Format(plan)
	if err != nil {
		return nil, errors.Wrap(err, "write the migration down")
	}
	for i, f := range files {
		version, name, _ := strings.Cut(f.Name(), "_")
		for _, t := range b.there {
			if n, err := strconv.ParseInt(t.Version(), 10, 64); err == nil && version <= t.Version() {
				version = strconv.FormatInt(n+1, 10)
			}
		}
		files[i] = migrate.NewLocalFile(version+"_"+name, f.Bytes())
	}
	return files, nil
}

// tables are the declared tables plus keys that Ent can't declare. A foreign key between two tables
// of an organization includes the organization, so that a row can't refer to another organization's
// row. A table without such a key gets a key to its organization. The other tables are covered by
// their parent, and a second check would only lock the organization's row on every write.
//
// A table's reference to itself is written by hand into the migration and named <table>_self_…. It
// can't be declared, because the comparison creates tables before the unique indexes that such a
// key needs. keepHandWritten protects these keys.
var tables = sync.OnceValue(func() []*schema.Table {
	for _, t := range entmigrate.Tables {
		organization, ok := columnOf(t, postgres.OrganizationColumn)
		if !ok {
			continue
		}
		covered := false
		for _, fk := range t.ForeignKeys {
			parent, scoped := columnOf(fk.RefTable, postgres.OrganizationColumn)
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
			RefTable:   entmigrate.OrganizationsTable,
			RefColumns: entmigrate.OrganizationsTable.PrimaryKey,
			OnDelete:   schema.NoAction,
		})
	}
	return entmigrate.Tables
})

// byHand recognizes the names of hand-written additions to declared tables that Ent can't declare:
// a table's reference to itself, or an index on an expression.
func byHand(table, name string) bool {
	return strings.HasPrefix(name, table+"_self_") || strings.HasPrefix(name, table+"_by_")
}

// generated recognizes a generated column, which Ent can't declare either.
func generated(a atlas.Attr) bool {
	_, ok := a.(*atlas.GeneratedExpr)
	return ok
}

// keepHandWritten removes from a comparison the changes that would drop hand-written parts of the
// schema.
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

// makeReferable adds to a table the unique index that a composite foreign key to it needs.
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
