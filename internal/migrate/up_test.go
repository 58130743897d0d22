package migrate_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/migrate"
	"earshot/internal/postgres"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

// filesVariable names the directory for a test process that only migrates. The test can kill that
// process.
const filesVariable = "EARSHOT_TEST_MIGRATIONS"

// migrateOnly is the main function of such a process.
func migrateOnly(dir string) error {
	s, err := postgres.Open(postgres.Options{URL: os.Getenv("DATABASE_URL")})
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = migrate.UpFrom(context.Background(), s, os.DirFS(dir), func(line string) { fmt.Println(line) })
	return err
}

// directory writes migrations into a new directory. The first one has version 1.
func directory(t *testing.T, texts ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d_test.sql", i+1)), []byte(text), 0o600))
	}
	return dir
}

// applying is a running migration.
type applying struct {
	mu    sync.Mutex
	lines []string
	ended chan error
	names []string
}

func applyAll(t *testing.T, url, dir string) *applying {
	t.Helper()
	a := &applying{ended: make(chan error, 1)}
	s := fixture.Open(t, url)
	go func() {
		var err error
		a.names, err = migrate.UpFrom(t.Context(), s, os.DirFS(dir), func(line string) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.lines = append(a.lines, line)
		})
		a.ended <- err
	}()
	return a
}

// await waits until the migration has reported a line that contains all of the parts.
func (a *applying) await(t *testing.T, parts ...string) {
	t.Helper()
	said := func() string { a.mu.Lock(); defer a.mu.Unlock(); return strings.Join(a.lines, "\n") }
	require.Eventually(t, func() bool {
		for line := range strings.SplitSeq(said(), "\n") {
			all := true
			for _, part := range parts {
				all = all && strings.Contains(line, part)
			}
			if all {
				return true
			}
		}
		return false
	}, testkit.Wait, 20*time.Millisecond, "it said:\n%s", said())
}

func (a *applying) finish(t *testing.T) []string {
	t.Helper()
	require.NoError(t, <-a.ended)
	return a.names
}

// scalar returns the only value of a query.
func scalar[T any](t *testing.T, c *pgx.Conn, query string) (value T) {
	t.Helper()
	require.NoError(t, c.QueryRow(t.Context(), query).Scan(&value))
	return value
}

const twoTables = `-- +goose Up
CREATE TABLE a (id int PRIMARY KEY, name text);
CREATE TABLE b (id int PRIMARY KEY, name text);
INSERT INTO a SELECT i FROM generate_series(1, 30) i;
`

func TestAMigrationThatFindsATableLockedLetsOthersPassAndTriesAgain(t *testing.T) {
	t.Parallel()
	url := testkit.EmptyDatabase(t)
	c := fixture.Connect(t, url)
	_, err := c.Exec(t.Context(), "CREATE TABLE a (id int)")
	require.NoError(t, err)
	dir := directory(t, "-- +goose Up\nALTER TABLE a ADD COLUMN x int;")
	tx, err := fixture.Connect(t, url+"&application_name=dump").Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE a IN ACCESS SHARE MODE")
	require.NoError(t, err)

	a := applyAll(t, url+"&lock_timeout=2500", dir)
	a.await(t, "waits for a (AccessExclusiveLock), held by process", "of dump from", "in a transaction since")
	a.await(t, "gave up waiting for a lock", "tried again in 1s")
	// Between two tries, queued sessions get the table.
	require.Zero(t, scalar[int](t, c, "SELECT count(*) FROM a"))
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, []string{"1_test.sql"}, a.finish(t))
}

func TestAMigrationHasLimitsInATransactionAndNoneBesideWrites(t *testing.T) {
	t.Parallel()
	const look = `CREATE TABLE IF NOT EXISTS %s AS
SELECT current_setting('lock_timeout') || ' ' || current_setting('statement_timeout') AS limits;`
	dir := directory(t, "-- +goose Up\n"+fmt.Sprintf(look, "a"), "-- +goose NO TRANSACTION\n-- +goose Up\n"+fmt.Sprintf(look, "b"))
	for parameters, limits := range map[string][]string{
		"": {"5s 8s", "0 0"},
		"&lock_timeout=20s&statement_timeout=30s": {"20s 30s", "0 0"},
	} {
		url := testkit.EmptyDatabase(t)
		s := fixture.Open(t, url+parameters)
		_, err := migrate.UpFrom(t.Context(), s, os.DirFS(dir), func(string) {})
		require.NoError(t, err)
		c := fixture.Connect(t, url)
		require.Equal(t, limits, []string{scalar[string](t, c, "SELECT limits FROM a"), scalar[string](t, c, "SELECT limits FROM b")})
	}
}

// killedWhen runs the migrations of a directory in a process and kills it when a query returns
// true.
func killedWhen(t *testing.T, url, dir, query string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), filesVariable+"="+dir, "DATABASE_URL="+url)
	out := testkit.NewLogs()
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	c := fixture.Connect(t, url)
	require.Eventually(t, func() bool { return scalar[bool](t, c, query) }, testkit.Wait, 10*time.Millisecond, "%s", out)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, <-ended)
}

func TestAnIndexThatAKilledMigrationLeftUnfinishedIsBuiltAnew(t *testing.T) {
	t.Parallel()
	url := testkit.EmptyDatabase(t)
	applyAll(t, url, directory(t, twoTables)).finish(t)
	dir := directory(t, twoTables, `-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX CONCURRENTLY IF NOT EXISTS "done" ON b (name);
CREATE INDEX CONCURRENTLY IF NOT EXISTS "unfinished" ON a (name);
`)
	writer, err := fixture.Connect(t, url+"&application_name=writer").Begin(t.Context())
	require.NoError(t, err)
	_, err = writer.Exec(t.Context(), "INSERT INTO a VALUES (100)")
	require.NoError(t, err)
	killedWhen(t, url, dir, "SELECT EXISTS (SELECT FROM pg_index JOIN pg_class ON oid = indexrelid WHERE relname = 'unfinished' AND NOT indisvalid)")
	c := fixture.Connect(t, url)
	done := scalar[uint32](t, c, "SELECT 'done'::regclass::oid")
	unfinished := scalar[uint32](t, c, "SELECT 'unfinished'::regclass::oid")

	// Postgres continues the statement of the dead process for a moment.
	a := applyAll(t, url, dir)
	a.await(t, "2_test.sql: index unfinished was left unfinished by somebody who was cut off")
	a.await(t, "waits for transactions that began before it, held by process", "writer")
	require.NoError(t, writer.Commit(t.Context()))
	require.Equal(t, []string{"2_test.sql"}, a.finish(t))
	require.Equal(t, done, scalar[uint32](t, c, "SELECT 'done'::regclass::oid"), "what was finished stays")
	require.NotEqual(t, unfinished, scalar[uint32](t, c, "SELECT 'unfinished'::regclass::oid"))
	require.Zero(t, scalar[int](t, c, "SELECT count(*) FROM pg_index WHERE NOT indisvalid"))
}

func TestAMigrationInBatchesGoesOnWhereAKilledOneWas(t *testing.T) {
	t.Parallel()
	url := testkit.EmptyDatabase(t)
	applyAll(t, url, directory(t, twoTables)).finish(t)
	dir := directory(t, twoTables, `-- +goose NO TRANSACTION
-- +goose Up
-- +goose StatementBegin
DO $$
DECLARE changed bigint;
BEGIN
  LOOP
    UPDATE a SET name = pg_backend_pid() WHERE id IN (SELECT id FROM a WHERE name IS NULL ORDER BY id LIMIT 10);
    GET DIAGNOSTICS changed = ROW_COUNT;
    EXIT WHEN changed = 0;
    COMMIT;
  END LOOP;
END $$;
-- +goose StatementEnd
`)
	holder, err := fixture.Connect(t, url).Begin(t.Context())
	require.NoError(t, err)
	_, err = holder.Exec(t.Context(), "SELECT FROM a WHERE id = 15 FOR UPDATE")
	require.NoError(t, err)
	killedWhen(t, url, dir, "SELECT count(name) = 10 FROM a")
	c := fixture.Connect(t, url)
	// Postgres ends the statement of a dead process.
	require.Eventually(t, func() bool {
		return scalar[int](t, c, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'earshot migrate%'") == 0
	}, testkit.Wait, testkit.Tick)
	require.NoError(t, holder.Rollback(t.Context()))

	require.Equal(t, []string{"2_test.sql"}, applyAll(t, url, dir).finish(t))
	require.Zero(t, scalar[int](t, c, "SELECT count(*) FROM a WHERE name IS NULL"))
	require.GreaterOrEqual(t, scalar[int](t, c, "SELECT count(DISTINCT name) FROM a"), 2, "what was done isn't done again")
}

func TestAWaitingMigrationNamesTheMigrationThatItWaitsFor(t *testing.T) {
	t.Parallel()
	url := testkit.EmptyDatabase(t)
	dir := directory(t, twoTables, "-- +goose Up\nALTER TABLE a ADD COLUMN x int;")
	applyAll(t, url, directory(t, twoTables)).finish(t)
	tx, err := fixture.Connect(t, url).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE a")
	require.NoError(t, err)
	first := applyAll(t, url+"&lock_timeout=0", dir)
	first.await(t, "waits for a (AccessExclusiveLock)")
	second := applyAll(t, url, dir)
	second.await(t, "waits for another migration: process", "of earshot migrate (", "which does: ALTER TABLE a ADD COLUMN x int")
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, []string{"2_test.sql"}, append(first.finish(t), second.finish(t)...))
}

func TestAnIndexThatTakesTimeSaysHowFarItIs(t *testing.T) {
	t.Parallel()
	url := testkit.EmptyDatabase(t)
	dir := directory(t, twoTables, `-- +goose Up
-- +goose StatementBegin
CREATE FUNCTION slow(id int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM pg_sleep(0.1); RETURN id; END $$;
-- +goose StatementEnd
`, "-- +goose NO TRANSACTION\n-- +goose Up\nCREATE INDEX CONCURRENTLY IF NOT EXISTS slow ON a (slow(id));")
	a := applyAll(t, url, dir)
	a.await(t, "3_test.sql: builds ", " on a: building index", "s so far)")
	require.Len(t, a.finish(t), 3)
}
