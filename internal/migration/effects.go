package migration

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/go-faster/errors"

	"earshot/ent/migrations"
)

// Effect is what a statement does to one table that was there before its migration.
// Tables that the migration makes are nobody's yet, and don't count.
type Effect struct {
	Table string `json:"table"`
	// Lock is the strongest that it takes, as Postgres's documentation calls it.
	Lock string `json:"lock"`
	// Reads says that it reads the whole table, Rewrites that it writes it anew: both
	// take as long as the table is large.
	Reads    bool `json:"reads,omitempty"`
	Rewrites bool `json:"rewrites,omitempty"`
}

// Effects are those of each statement of each migration, by the name of its file.
type Effects map[string][][]Effect

// Recorded are the effects of this program's migrations.
func Recorded() (Effects, error) {
	var e Effects
	if err := json.Unmarshal(migrations.Effects, &e); err != nil {
		return nil, errors.Wrap(err, "read what migrations do")
	}
	return e, nil
}

// Text is how effects are recorded.
func (e Effects) Text() ([]byte, error) {
	text, err := json.MarshalIndent(e, "", " ")
	if err != nil {
		return nil, errors.Wrap(err, "write what migrations do")
	}
	// A statement without effects has a line, and an effect, too.
	text = compact.ReplaceAllFunc(text, func(object []byte) []byte {
		var one bytes.Buffer
		if json.Compact(&one, object) != nil {
			return object
		}
		return one.Bytes()
	})
	return append(text, '\n'), nil
}

// locks are Postgres's, the weakest first, with what waits while one is held.
var locks = []struct{ name, waits string }{
	{"ACCESS SHARE", "nothing waits"},
	{"ROW SHARE", "nothing waits"},
	{"ROW EXCLUSIVE", "writes to the rows that it changes wait"},
	{quietest, "reads and writes go on, other changes of the table wait"},
	{"SHARE", "writes wait, reads go on"},
	{"SHARE ROW EXCLUSIVE", "writes wait, reads go on"},
	{"EXCLUSIVE", "writes wait, reads go on"},
	{"ACCESS EXCLUSIVE", "reads and writes wait"},
}

const (
	// quietest is the strongest lock that neither reads nor writes wait for.
	quietest = "SHARE UPDATE EXCLUSIVE"
	// writing is the lock of whoever changes rows.
	writing = "ROW EXCLUSIVE"
)

func strength(lock string) int {
	return slices.IndexFunc(locks, func(l struct{ name, waits string }) bool { return l.name == lock })
}

// Waits says what waits while the lock is held.
func (e Effect) Waits() string { return locks[strength(e.Lock)].waits }

// Stronger reports whether its lock is stronger than another's.
func (e Effect) Stronger(than Effect) bool { return strength(e.Lock) > strength(than.Lock) }

// blocks reports whether requests wait for the lock.
func (e Effect) blocks() bool { return strength(e.Lock) > strength(quietest) }

// takesTime reports whether the statement takes the longer the more rows there are.
func (e Effect) takesTime() bool { return e.Reads || e.Rewrites || e.Lock == writing }
