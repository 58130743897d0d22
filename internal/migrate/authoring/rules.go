package authoring

import (
	"fmt"

	"earshot/internal/migrate"
)

// Problems returns the reasons why a migration can't be applied while programs of the release
// before serve requests. Each reason has a suggestion. docs/upgrading.md has the rules.
func (o Observed) Problems() (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, b := range o.broken {
		add("%s: rows can't be added to the table. Give it a default, or let it be null", b)
	}
	if len(all) > 0 {
		return all // the other problems may follow from these
	}
	for i, effects := range o.Effects {
		statement := firstLine(o.Statements[i])
		for _, e := range effects {
			switch {
			case e.Rewrites:
				add("%s: writes all of %s anew under %s. Add a new column, have the program write both, and fill it in batches",
					statement, e.Table, e.Lock)
			case !o.Transaction && e.Blocks():
				add("%s: takes %s on %s, and a file without transaction waits for its locks without end. "+
					"Put it into a file with a transaction", statement, e.Lock, e.Table)
			case o.Transaction && e.TakesTime():
				add("%s: %s", statement, o.slowly(e))
			}
		}
	}
	if o.Contract == "" {
		for _, t := range o.taken {
			add("%s: the release before may use it. When no release that may still run does, say so in a line "+
				"`-- contract: not used since <release>`", t)
		}
	}
	if o.again != nil {
		add("a file without transaction runs again from its start after an interruption, and this one can't run twice: %v. "+
			"Write IF NOT EXISTS, IF EXISTS, or a WHERE that leaves out the finished rows", o.again)
	}
	return all
}

// slowly describes the problem of a slow statement in a transaction.
func (o Observed) slowly(e migrate.Effect) string {
	const apart = "in a file of its own that begins with `-- +goose NO TRANSACTION`"
	switch e.Lock {
	case "SHARE":
		return fmt.Sprintf("reads all of %s, and writes wait meanwhile. Write CREATE INDEX CONCURRENTLY IF NOT EXISTS, %s", e.Table, apart)
	case migrate.Writing:
		return fmt.Sprintf("changes rows of %s in one transaction. Change them in batches that commit, %s", e.Table, apart)
	case migrate.NonBlocking, "ACCESS SHARE", "ROW SHARE":
		return fmt.Sprintf("reads all of %s in one transaction. Write it %s", e.Table, apart)
	}
	return fmt.Sprintf("reads all of %s under %s. Add the constraint as NOT VALID, and VALIDATE it %s. "+
		"For NOT NULL, validate CHECK (… IS NOT NULL) first, and SET NOT NULL in a third file", e.Table, e.Lock, apart)
}
