package devstack

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/tier"
)

const noteDown = "CREATE TABLE notes (text text); INSERT INTO notes VALUES ('kept')"

func TestAClusterKeepsItsDataWhenStoppedAndStartedAgain(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	dir := reachableDir(t)
	p := startPostgresIn(t, PostgresOptions{Dir: dir, Durable: true})
	execute(t, p, noteDown)
	require.NoError(t, p.Stop(t.Context()))
	require.NoError(t, p.Stop(t.Context()), "stopping twice is allowed")

	again := startPostgresIn(t, PostgresOptions{Dir: dir, Durable: true})
	require.Equal(t, "kept", readNote(t, again.URL("postgres")))
	require.Equal(t, p.password, again.password)
}

func TestTwoClustersRunBesideEachOther(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	one := startPostgresIn(t, PostgresOptions{Dir: reachableDir(t)})
	two := startPostgresIn(t, PostgresOptions{Dir: reachableDir(t)})
	require.NotEqual(t, one.Port(), two.Port())
	execute(t, one, noteDown)
	_, err := connect(t, two.URL("postgres")).Exec(t.Context(), "SELECT text FROM notes")
	require.ErrorContains(t, err, "does not exist")
}

func TestAClusterWhosePostmasterWasKilledStartsAgain(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	dir := reachableDir(t)
	p := startPostgresIn(t, PostgresOptions{Dir: dir, Durable: true})
	execute(t, p, noteDown)
	p.Kill()

	again := startPostgresIn(t, PostgresOptions{Dir: dir, Durable: true})
	require.Equal(t, "kept", readNote(t, again.URL("postgres")))
}

func TestATakenPortMovesTheClusterToAnother(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	listener, err := net.Listen("tcp", hostPort(0))
	require.NoError(t, err)
	defer listener.Close()
	taken := listener.Addr().(*net.TCPAddr).Port
	p := startPostgresIn(t, PostgresOptions{Dir: reachableDir(t), Port: taken})
	require.NotEqual(t, taken, p.Port())
	require.Less(t, p.Port(), EphemeralPorts)
}

func TestARunningClustersDirectoryIsRefusedToOthers(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	dir := reachableDir(t)
	p := startPostgresIn(t, PostgresOptions{Dir: dir})
	_, err := StartPostgres(t.Context(), PostgresOptions{Dir: dir})
	require.ErrorContains(t, err, "in use by another running program")
	require.ErrorContains(t, Remove(dir), "in use by another running program")
	execute(t, p, "SELECT 1")
}

func TestAStrangerWithoutThePasswordIsRefused(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	p := startPostgresIn(t, PostgresOptions{Dir: reachableDir(t)})
	stranger := &Postgres{port: p.port, password: "guessed"}
	var refused *pgconn.PgError
	require.ErrorAs(t, stranger.ping(t.Context()), &refused)
	require.Equal(t, "28P01", refused.Code, "invalid_password")
}

func TestADatabaseIsMadeOnceHoweverManyAskForIt(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	p := startPostgresIn(t, PostgresOptions{Dir: reachableDir(t)})
	var callers sync.WaitGroup
	results := make([]error, 4)
	for i := range results {
		callers.Go(func() { results[i] = p.CreateDatabase(t.Context(), `odd "name"`) })
	}
	callers.Wait()
	for _, err := range results {
		require.NoError(t, err)
	}
	require.NoError(t, p.CreateDatabase(t.Context(), `odd "name"`))
	connect(t, p.URL(`odd "name"`))
}

func TestLettersBeyondASCIIHaveACaseAndSortByCodePoint(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	p := startPostgresIn(t, PostgresOptions{Dir: reachableDir(t)})
	var same, before bool
	row := connect(t, p.URL("postgres")).QueryRow(t.Context(), "SELECT 'ÄÖ' ILIKE 'äö', 'Z' < 'a'")
	require.NoError(t, row.Scan(&same, &before))
	require.True(t, same)
	require.True(t, before)
}

func TestAFailedStartQuotesTheLog(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	dir := reachableDir(t)
	p := startPostgresIn(t, PostgresOptions{Dir: dir})
	require.NoError(t, p.Stop(t.Context()))
	settings := filepath.Join(dir, "data", "postgresql.auto.conf")
	require.NoError(t, os.WriteFile(settings, []byte("no_such_setting = 1\n"), 0o600))
	_, err := StartPostgres(t.Context(), PostgresOptions{Dir: dir})
	require.ErrorContains(t, err, "unrecognized configuration parameter")
	require.ErrorContains(t, err, "to begin anew remove "+dir)
}

func TestAHalfMadeClusterIsMadeAnew(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	dir := reachableDir(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "data.new"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data.new", "PG_VERSION"), []byte("15\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "password"), []byte("old\n"), 0o600))
	execute(t, startPostgresIn(t, PostgresOptions{Dir: dir}), "SELECT 1")
}

func TestACanceledStartLeavesNoServer(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	for _, when := range []string{"", "making a Postgres"} {
		dir := reachableDir(t)
		ctx, cancel := context.WithCancel(t.Context())
		report := func(format string, _ ...any) {
			if strings.HasPrefix(format, when) {
				cancel()
			}
		}
		if when == "" {
			cancel()
		}
		_, err := StartPostgres(ctx, PostgresOptions{Dir: dir, Report: report})
		require.ErrorIs(t, err, context.Canceled)
		require.NoDirExists(t, filepath.Join(dir, "data"))
		execute(t, startPostgresIn(t, PostgresOptions{Dir: dir}), "SELECT 1")
	}
}

func TestAServerHasAProcessGroupOfItsOwnSoThatCtrlCPassesIt(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	p := startPostgresIn(t, PostgresOptions{Dir: reachableDir(t)})
	group, err := syscall.Getpgid(p.ID())
	require.NoError(t, err)
	require.Equal(t, p.ID(), group)
}

func TestAClusterMovesOutOfADirectoryThatPostgresCannotEnter(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs Postgres as somebody else")
	}
	dir := filepath.Join(reachableDir(t), "closed", "postgres")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o700))
	t.Cleanup(func() { require.NoError(t, Remove(dir)) })
	p := startPostgresIn(t, PostgresOptions{Dir: dir})
	execute(t, p, noteDown)
	require.NoError(t, p.Stop(t.Context()))
	home := recordedHome(dir)
	require.DirExists(t, filepath.Join(home, "data"))
	require.NoDirExists(t, filepath.Join(dir, "data"))

	again := startPostgresIn(t, PostgresOptions{Dir: dir})
	require.Equal(t, "kept", readNote(t, again.URL("postgres")))
	require.NoError(t, again.Stop(t.Context()))
	require.NoError(t, Remove(dir))
	require.NoDirExists(t, home)
	require.NoDirExists(t, dir)
}
