package authoring

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// column has the properties that matter to a program that writes the column.
type column struct {
	kind             string
	required, filled bool
}

// columns returns the columns of every table, by table and name.
func (o *observer) columns(ctx context.Context) (map[string]map[string]column, error) {
	rows, err := o.looks.Query(ctx, `
		SELECT t.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
			a.atthasdef OR a.attidentity <> '' OR a.attgenerated <> ''
		FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE t.relkind IN ('r', 'p') AND t.relnamespace = current_schema::regnamespace`)
	if err != nil {
		return nil, errors.Wrap(err, "list the columns")
	}
	found := map[string]map[string]column{}
	var (
		table, name string
		c           column
	)
	_, err = pgx.ForEachRow(rows, []any{&table, &name, &c.kind, &c.required, &c.filled}, func() error {
		if found[table] == nil {
			found[table] = map[string]column{}
		}
		found[table][name] = c
		return nil
	})
	if err != nil {
		return nil, errors.Wrap(err, "list the columns")
	}
	return found, nil
}

// compare compares the columns before and after a migration. The result taken lists the changes
// that break a program of the release before. The result broken lists new columns that such a
// program can't fill.
func compare(before, after map[string]map[string]column) (taken, broken []string) {
	for _, table := range slices.Sorted(maps.Keys(before)) {
		now, there := after[table]
		if !there {
			taken = append(taken, fmt.Sprintf("table %s is gone", table))
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(before[table])) {
			was := before[table][name]
			c, there := now[name]
			switch {
			case !there:
				taken = append(taken, fmt.Sprintf("column %s.%s is gone", table, name))
			case c.kind != was.kind:
				taken = append(taken, fmt.Sprintf("column %s.%s was %s and is %s", table, name, was.kind, c.kind))
			case c.required && !was.required:
				taken = append(taken, fmt.Sprintf("column %s.%s could be null", table, name))
			case c.required && was.filled && !c.filled:
				taken = append(taken, fmt.Sprintf("column %s.%s had a default", table, name))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(now)) {
			_, known := before[table][name]
			if c := now[name]; !known && c.required && !c.filled {
				broken = append(broken, fmt.Sprintf("column %s.%s is new, NOT NULL and without a default", table, name))
			}
		}
	}
	return taken, broken
}
