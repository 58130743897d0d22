package migrate

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"

	"github.com/go-faster/errors"

	"earshot/ent/migrations"
)

// Effect is the effect of a statement on one table that existed before its migration. Tables that
// the migration itself creates don't count, because no program uses them yet.
type Effect struct {
	Table string `json:"table"`
	// Lock is the strongest lock that the statement takes, by its name in Postgres's documentation.
	Lock string `json:"lock"`
	// Reads reports a read of the whole table, and Rewrites a rewrite of it. Both take time in
	// proportion to the size of the table.
	Reads    bool `json:"reads,omitempty"`
	Rewrites bool `json:"rewrites,omitempty"`
}

// Effects has the effects of each statement of each migration, by the name of the file.
type Effects map[string][][]Effect

// Recorded returns the effects of this program's migrations.
func Recorded() (Effects, error) {
	var e Effects
	if err := json.Unmarshal(migrations.Effects, &e); err != nil {
		return nil, errors.Wrap(err, "read what migrations do")
	}
	return e, nil
}

// compact matches an object in a list of lists.
var compact = regexp.MustCompile(`\{\s*"table"[^}]*\}`)

// Text returns the effects in the format of the record.
func (e Effects) Text() ([]byte, error) {
	text, err := json.MarshalIndent(e, "", " ")
	if err != nil {
		return nil, errors.Wrap(err, "write what migrations do")
	}
	// Each effect has one line, and so has each statement without effects.
	text = compact.ReplaceAllFunc(text, func(object []byte) []byte {
		var one bytes.Buffer
		if json.Compact(&one, object) != nil {
			return object
		}
		return one.Bytes()
	})
	return append(text, '\n'), nil
}

// locks are Postgres's table locks, the weakest first, with the operations that wait for them.
var locks = []struct{ name, waits string }{
	{"ACCESS SHARE", "nothing waits"},
	{"ROW SHARE", "nothing waits"},
	{"ROW EXCLUSIVE", "writes to the rows that it changes wait"},
	{NonBlocking, "reads and writes go on, other changes of the table wait"},
	{"SHARE", "writes wait, reads go on"},
	{"SHARE ROW EXCLUSIVE", "writes wait, reads go on"},
	{"EXCLUSIVE", "writes wait, reads go on"},
	{"ACCESS EXCLUSIVE", "reads and writes wait"},
}

const (
	// NonBlocking is the strongest lock that blocks neither reads nor writes.
	NonBlocking = "SHARE UPDATE EXCLUSIVE"
	// Writing is the lock of a statement that changes rows.
	Writing = "ROW EXCLUSIVE"
)

// LockStrength returns the place of a lock in the order of strength, from 0. It returns -1 for an
// unknown lock.
func LockStrength(lock string) int {
	return slices.IndexFunc(locks, func(l struct{ name, waits string }) bool { return l.name == lock })
}

// Waits describes the operations that wait while the lock is held.
func (e Effect) Waits() string { return locks[LockStrength(e.Lock)].waits }

// Stronger reports whether the lock of e is stronger than that of another effect.
func (e Effect) Stronger(than Effect) bool { return LockStrength(e.Lock) > LockStrength(than.Lock) }

// Blocks reports whether requests wait for the lock.
func (e Effect) Blocks() bool { return LockStrength(e.Lock) > LockStrength(NonBlocking) }

// TakesTime reports whether the duration of the statement depends on the number of rows.
func (e Effect) TakesTime() bool { return e.Reads || e.Rewrites || e.Lock == Writing }
