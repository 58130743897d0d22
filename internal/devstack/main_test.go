package devstack

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// parentDir names a variable that changes the behaviour of the test binary: it starts both servers
// in that directory and waits to be killed.
const parentDir = "EARSHOT_DEVSTACK_TEST_PARENT"

// parentState is the output of such a program, as one line of JSON.
type parentState struct {
	Postgres, Temporal int // process ids
	URL                string
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentDir); dir != "" {
		if err := beParent(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func beParent(dir string) error {
	ctx := context.Background()
	p, err := StartPostgres(ctx, PostgresOptions{Dir: dir, Durable: true})
	if err != nil {
		return err
	}
	binary, err := TemporalBinary(ctx, repository(), nil)
	if err != nil {
		return err
	}
	s, err := StartTemporal(ctx, TemporalOptions{Dir: dir, Binary: binary, UIPort: Headless, DatabaseFile: true})
	if err != nil {
		return err
	}
	state := parentState{Postgres: p.ID(), Temporal: s.ID(), URL: p.URL("postgres")}
	if err := json.NewEncoder(os.Stdout).Encode(state); err != nil {
		return err
	}
	select {} // until it is killed
}

// repository returns the root of the repository.
func repository() string { return filepath.Join("..", "..") }

// reachableDir returns a temporary directory that the user postgres can enter. The parent of
// t.TempDir is closed to other users.
func reachableDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
	return dir
}

// startPostgresIn starts a cluster that ends with the test.
func startPostgresIn(t *testing.T, o PostgresOptions) *Postgres {
	t.Helper()
	o.Report = t.Logf
	p, err := StartPostgres(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop(context.Background())) })
	return p
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func execute(t *testing.T, p *Postgres, statement string) {
	t.Helper()
	_, err := connect(t, p.URL("postgres")).Exec(t.Context(), statement)
	require.NoError(t, err)
}

func readNote(t *testing.T, url string) (note string) {
	t.Helper()
	require.NoError(t, connect(t, url).QueryRow(t.Context(), "SELECT text FROM notes").Scan(&note))
	return note
}
