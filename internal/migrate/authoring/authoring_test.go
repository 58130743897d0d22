package authoring_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"earshot/ent/migrations"
	"earshot/internal/migrate"
	"earshot/internal/migrate/authoring"
	"earshot/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// observed runs migration files on an empty database, and returns the observations.
func observed(t *testing.T, texts ...string) []authoring.Observed {
	t.Helper()
	dir := fstest.MapFS{}
	for i, text := range texts {
		dir[string(rune('1'+i))+"_test.sql"] = &fstest.MapFile{Data: []byte(text)}
	}
	files, err := migrate.Files(dir)
	require.NoError(t, err)
	all, err := authoring.Observe(t.Context(), testkit.EmptyDatabase(t), files)
	require.NoError(t, err)
	return all
}

func TestTheEffectsOfTheMigrations(t *testing.T) {
	t.Parallel()
	files, err := migrate.Files(migrations.FS)
	require.NoError(t, err)
	all, err := authoring.Observe(t.Context(), testkit.EmptyDatabase(t), files) // takes seconds, so once for all cases
	require.NoError(t, err)
	// The record is the source of `earshot migrate plan`.
	t.Run("match the record", func(t *testing.T) {
		text, err := authoring.EffectsOf(all).Text()
		require.NoError(t, err)
		recorded, err := os.ReadFile(filepath.Join(testkit.Root(), "ent", "migrations", "effects.json"))
		require.NoError(t, err)
		require.Equal(t, string(recorded), string(text), "run `make migration`")
	})
	t.Run("follow the rules since there are rules", func(t *testing.T) {
		for _, o := range all {
			if !migrations.BeforeRules(o.Name) {
				require.Empty(t, o.Problems(), o.Name)
			}
		}
	})
	t.Run("violated a rule once before, which is reported", func(t *testing.T) {
		early := slices.IndexFunc(all, func(o authoring.Observed) bool { return o.Name == "20261122054022_hash_members_addresses.sql" })
		require.GreaterOrEqual(t, early, 0)
		require.Contains(t, all[early].Problems()[0], "reads all of comments, and writes wait meanwhile")
	})
}

const two = `-- +goose Up
CREATE TABLE a (id bigint PRIMARY KEY, name text, size int NOT NULL DEFAULT 0);
CREATE TABLE b (id bigint PRIMARY KEY, a_id bigint);
CREATE INDEX old ON b (a_id);
`

// up returns a migration in a transaction, and apart one without.
func up(sql string) string    { return "-- +goose Up\n" + sql }
func apart(sql string) string { return "-- +goose NO TRANSACTION\n-- +goose Up\n" + sql }

func TestAMigrationThatTheReleaseBeforeWouldStandStillForIsRefused(t *testing.T) {
	t.Parallel()
	const not = "isn't refused"
	for what, c := range map[string]struct{ sql, problem string }{
		"an index that writes wait for":           {up(`CREATE INDEX i ON a (name);`), "Write CREATE INDEX CONCURRENTLY IF NOT EXISTS"},
		"a reference that is checked at once":     {up(`ALTER TABLE b ADD CONSTRAINT r FOREIGN KEY (a_id) REFERENCES a;`), "Add the constraint as NOT VALID"},
		"a check that is made at once":            {up(`ALTER TABLE a ADD CONSTRAINT c CHECK (size >= 0);`), "Add the constraint as NOT VALID"},
		"a column that may not be null any more":  {up(`ALTER TABLE a ALTER COLUMN name SET NOT NULL;`), "validate CHECK (… IS NOT NULL) first"},
		"a constraint validated in a transaction": {up(`ALTER TABLE a ADD CONSTRAINT c CHECK (size >= 0) NOT VALID; ` + "\n" + `ALTER TABLE a VALIDATE CONSTRAINT c;`), "reads all of a in one transaction"},
		"another type of a column":                {up(`ALTER TABLE a ALTER COLUMN size TYPE bigint;`), "writes all of a anew under ACCESS EXCLUSIVE"},
		"a default that differs by row":           {up(`ALTER TABLE a ADD COLUMN at timestamptz NOT NULL DEFAULT clock_timestamp();`), "writes all of a anew"},
		"a column without default":                {up(`ALTER TABLE a ADD COLUMN x int NOT NULL;`), "column a.x is new, NOT NULL and without a default"},
		"rows changed in one transaction":         {up(`UPDATE a SET name = '' WHERE name IS NULL;`), "Change them in batches that commit"},
		"a column that is gone":                   {up(`ALTER TABLE a DROP COLUMN name;`), "column a.name is gone: the release before may use it"},
		"a column that is called otherwise":       {up(`ALTER TABLE a RENAME COLUMN name TO title;`), "column a.name is gone"},
		"a table that is gone":                    {up(`DROP TABLE b;`), "table b is gone"},
		"a table that is called otherwise":        {up(`ALTER TABLE b RENAME TO c;`), "table b is gone"},
		"a default that is gone":                  {up(`ALTER TABLE a ALTER COLUMN size DROP DEFAULT;`), "column a.size had a default"},
		"a strong lock without a limit":           {apart(`ALTER TABLE a ADD COLUMN IF NOT EXISTS x int;`), "Put it into a file with a transaction"},
		"an index that can't be begun again":      {apart(`CREATE INDEX CONCURRENTLY i ON a (name);`), "this one can't run twice"},
		"a column that was said to be unused":     {up("-- contract: not used since 1.4\nALTER TABLE a DROP COLUMN name;"), not},
		"a new column":                            {up(`ALTER TABLE a ADD COLUMN x int, ADD COLUMN y int NOT NULL DEFAULT 0;`), not},
		"a new table that refers to another":      {up(`CREATE TABLE c (id bigint PRIMARY KEY REFERENCES a, n int); ` + "\n" + `CREATE INDEX i ON c (n);`), not},
		"an index built beside writes":            {apart(`CREATE INDEX CONCURRENTLY IF NOT EXISTS i ON a (name);`), not},
		"a reference that isn't checked yet":      {up(`ALTER TABLE b ADD CONSTRAINT r FOREIGN KEY (a_id) REFERENCES a NOT VALID;`), not},
		"an index dropped beside writes":          {apart(`DROP INDEX CONCURRENTLY IF EXISTS old;`), not},
		"rows changed in batches": {apart(`-- +goose StatementBegin
DO $$
DECLARE changed bigint;
BEGIN
  LOOP
    UPDATE a SET name = '' WHERE id IN (SELECT id FROM a WHERE name IS NULL LIMIT 1000);
    GET DIAGNOSTICS changed = ROW_COUNT;
    EXIT WHEN changed = 0;
    COMMIT;
  END LOOP;
END $$;
-- +goose StatementEnd
`), not},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			problems := observed(t, two, c.sql)[1].Problems()
			if c.problem == not {
				require.Empty(t, problems)
				return
			}
			require.NotEmpty(t, problems)
			require.Contains(t, strings.Join(problems, "\n"), c.problem)
		})
	}
}

func TestAConstraintIsValidatedInAFileOfItsOwn(t *testing.T) {
	t.Parallel()
	all := observed(t, two,
		up(`ALTER TABLE a ADD CONSTRAINT c CHECK (name IS NOT NULL) NOT VALID;`),
		apart(`ALTER TABLE a VALIDATE CONSTRAINT c;`),
		up("-- contract: written by every release since 1.4\nALTER TABLE a ALTER COLUMN name SET NOT NULL;"))
	for _, o := range all {
		require.Empty(t, o.Problems(), o.Name)
	}
	require.Equal(t, [][]migrate.Effect{{{Table: "a", Lock: "SHARE UPDATE EXCLUSIVE", Reads: true}}}, all[2].Effects)
	require.Equal(t, [][]migrate.Effect{{{Table: "a", Lock: "ACCESS EXCLUSIVE"}}}, all[3].Effects, "it reads nothing")
}

func TestTheLocksOfAnIndexBuiltBesideWritesAreSeenWhileItWaits(t *testing.T) {
	t.Parallel()
	all := observed(t, two, apart("CREATE INDEX CONCURRENTLY IF NOT EXISTS i ON a (name);\nDROP INDEX CONCURRENTLY IF EXISTS i;"))
	require.Equal(t, [][]migrate.Effect{
		{{Table: "a", Lock: "SHARE UPDATE EXCLUSIVE", Reads: true}},
		{{Table: "a", Lock: "SHARE UPDATE EXCLUSIVE"}},
	}, all[1].Effects)
}

func TestAStatementOnANewTableHasNoEffects(t *testing.T) {
	t.Parallel()
	for _, o := range observed(t, two) {
		for _, effects := range o.Effects {
			require.Empty(t, effects)
		}
	}
}
