package testkit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/ent/migrations"
	"earshot/internal/migrate"
	"earshot/internal/postgres"
)

// templateLock is the advisory lock for creating the template database. The number is arbitrary but
// unique.
const templateLock = 4280

// Database creates a database with the current schema for one test and returns its URL. The test
// doesn't drop it, because file systems are slow to create files where others were just removed.
func Database(t testing.TB) string {
	t.Helper()
	url, err := NewDatabase(t.Context())
	require.NoError(t, err)
	return url
}

// NewDatabase is Database without a test.
func NewDatabase(ctx context.Context) (url string, err error) {
	template, err := templateOnce()
	if err != nil {
		return "", err
	}
	return createDatabase(ctx, template)
}

// shared is the database of SharedDatabase and SharedStore.
var shared = sync.OnceValues(func() (s struct {
	url   string
	store *postgres.DB
}, err error) {
	if s.url, err = NewDatabase(context.Background()); err != nil {
		return s, err
	}
	s.store, err = postgres.Open(postgres.Options{URL: s.url})
	return s, err
})

// SharedDatabase returns the URL of one database for all tests of the process. It saves 0.2 s of
// processor time, and is for tests that read and change only organizations of their own. Such a test
// doesn't lock tables, and doesn't change the schema.
func SharedDatabase(t testing.TB) string {
	t.Helper()
	s, err := shared()
	require.NoError(t, err)
	return s.url
}

// SharedStore is a store on the SharedDatabase. It stays open until the process ends.
func SharedStore(t testing.TB) *postgres.DB {
	t.Helper()
	s, err := shared()
	require.NoError(t, err)
	return s.store
}

// ImpatientDatabase is a Database with a lock timeout of one second. Production uses ten seconds. A
// test that holds the lock therefore ends soon.
func ImpatientDatabase(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(Database(t))
	require.NoError(t, err)
	query := u.Query()
	query.Set("lock_timeout", "1000") // milliseconds
	u.RawQuery = query.Encode()
	return u.String()
}

// Copy creates a copy of a database, to which nobody may be connected, and returns its URL.
func Copy(t testing.TB, of string) string {
	t.Helper()
	u, err := url.Parse(of)
	require.NoError(t, err)
	made, err := createDatabase(t.Context(), strings.TrimPrefix(u.Path, "/"))
	require.NoError(t, err)
	return made
}

// EmptyDatabase is a Database without a schema.
func EmptyDatabase(t testing.TB) string {
	t.Helper()
	url, err := createDatabase(t.Context(), "template1")
	require.NoError(t, err)
	return url
}

// Store opens a store on a new Database.
func Store(t testing.TB) *postgres.DB {
	t.Helper()
	s, err := postgres.Open(postgres.Options{URL: Database(t)})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func createDatabase(ctx context.Context, template string) (url string, err error) {
	id := uuid.New()
	name := "test_" + hex.EncodeToString(id[:])
	err = administer(ctx, func(ctx context.Context, c *pgx.Conn) error {
		// By default Postgres writes the 10 MB of the template into its log, too. That takes 0.3 s of processor
		// time, and copying the files half of it.
		_, err := c.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template+" STRATEGY file_copy")
		return err
	})
	if err != nil {
		return "", errors.Wrap(err, "create a database")
	}
	return databaseURL(name), nil
}

// templateOnce creates the template that other databases are copied from. All processes that use
// the server share it, because its name contains the hash of the migrations.
var templateOnce = sync.OnceValues(func() (string, error) {
	hash := sha256.New()
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		return "", errors.Wrap(err, "list the migrations")
	}
	for _, name := range names {
		text, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			return "", errors.Wrap(err, "read a migration")
		}
		hash.Write(text)
	}
	name := "earshot_template_" + hex.EncodeToString(hash.Sum(nil)[:8])
	return name, administer(context.Background(), func(ctx context.Context, c *pgx.Conn) error { return makeTemplate(ctx, c, name) })
})

func makeTemplate(ctx context.Context, c *pgx.Conn, name string) error {
	if _, err := c.Exec(ctx, "SELECT pg_advisory_lock($1)", templateLock); err != nil {
		return errors.Wrap(err, "lock the template")
	}
	defer func() { _, _ = c.Exec(ctx, "SELECT pg_advisory_unlock($1)", templateLock) }()
	var there bool
	err := c.QueryRow(ctx, "SELECT datistemplate FROM pg_database WHERE datname = $1", name).Scan(&there)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return errors.Wrap(err, "look for the template")
	}
	if there {
		return nil
	}
	// An existing database that isn't a template was left by a process that died.
	if _, err := c.Exec(ctx, "DROP DATABASE IF EXISTS "+name); err != nil {
		return errors.Wrap(err, "drop an unfinished template")
	}
	if _, err := c.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return errors.Wrap(err, "create the template")
	}
	s, err := postgres.Open(postgres.Options{URL: databaseURL(name)})
	if err != nil {
		return err
	}
	_, err = migrate.Up(ctx, s)
	s.Close()
	if err != nil {
		return err
	}
	if _, err := c.Exec(ctx, "ALTER DATABASE "+name+" IS_TEMPLATE true"); err != nil {
		return errors.Wrap(err, "finish the template")
	}
	return nil
}

// administration is the connection of this process to the database postgres. It stays open until the
// process ends, because a new connection takes Postgres longer than a new database (36 and 26 ms).
var administration struct {
	sync.Mutex
	conn *pgx.Conn
}

// administer calls f with the connection of this process. Ctx must not end during a statement, because
// that would close the connection, and with it the locks of all leases. So f gets one that doesn't end.
func administer(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	ctx = context.WithoutCancel(ctx)
	administration.Lock()
	defer administration.Unlock()
	if administration.conn == nil {
		c, err := pgx.Connect(ctx, os.Getenv(postgresVariable))
		if err != nil {
			return errors.Wrap(err, "reach the tests' Postgres")
		}
		administration.conn = c
	}
	return f(ctx, administration.conn)
}

func databaseURL(name string) string {
	u, err := url.Parse(os.Getenv(postgresVariable))
	if err != nil {
		panic(err) // this URL was used before
	}
	u.Path = "/" + name
	return u.String()
}
