package devstack

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"earshot/internal/devstack/process"
)

const (
	postgresName = "postgres"
	// postgresReady bounds a start. After a crash, the start flushes every file, replays the log and
	// writes a checkpoint. With 20 MB of log that takes 5 s on an idle disk. In CI, 30 s were not
	// enough. If Postgres can't start, it exits early.
	postgresReady = 5 * time.Minute
	// postgresGrace allows for the checkpoint of a fast shutdown.
	postgresGrace = 20 * time.Second
	// maxConnections is enough for test packages that run in parallel with a pool each. A slot
	// costs only about 20 kB of shared memory.
	maxConnections = 200
)

// PostgresOptions configures a cluster.
type PostgresOptions struct {
	// Dir contains the data, the password and the log. It is created if necessary. Two running
	// programs can't share one.
	Dir string
	// Port is the preferred port. If it is 0 or taken, a free port is chosen.
	Port int
	// Durable keeps the data after a power failure. Without it commits are fast, but a crash of the
	// machine may corrupt the cluster: for tests.
	Durable bool
	// Password is the superuser's password of a new cluster. If it is empty, a random one is
	// generated.
	Password string
	// Make creates the data of a new cluster in place of initdb. Data is an empty directory, and
	// command prepares one of Postgres's programs with the cluster's user.
	Make   func(data string, command func(program string, args ...string) *exec.Cmd) error
	Report Report
}

// Postgres is a running cluster. It ends with this program. Stop shuts it down: it ends the sessions
// and writes the data, or ends immediately after 20 s. After that, and after Kill, the next start
// recovers the data.
type Postgres struct {
	*process.Process

	port     int
	password string
	programs string
}

// StartPostgres creates the cluster if there is none, starts it, and returns when it answers. Ctx
// bounds only the start. The error names the programs that are missing, or quotes the end of the
// log.
func StartPostgres(ctx context.Context, o PostgresOptions) (*Postgres, error) {
	dir, err := makeDir(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	p := &Postgres{}
	p.Process, err = process.Start(ctx, process.Server{
		Name: postgresName, Dir: dir,
		Prepare: func(ctx context.Context) (*exec.Cmd, error) { return p.prepare(ctx, o) },
		Ready:   p.ping, ReadyWithin: postgresReady,
		Advice: "; to begin anew remove " + dir,
		// A fast shutdown ends sessions and writes a checkpoint. An immediate one does neither.
		Signals: []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT}, Grace: postgresGrace,
		Report: o.Report,
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// makeDir creates a server's directory and returns its absolute path.
func makeDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", errors.Wrap(err, "find the directory")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", errors.Wrap(err, "make the directory")
	}
	return dir, nil
}

func (p *Postgres) prepare(ctx context.Context, o PostgresOptions) (*exec.Cmd, error) {
	bin, err := findBinaries(ctx, madeBy(o.Dir), o.Report)
	if err != nil {
		return nil, err
	}
	c, err := openCluster(ctx, o.Dir, bin, o.Report)
	if err != nil {
		return nil, err
	}
	if p.password, err = c.password(ctx, bin, o); err != nil {
		return nil, err
	}
	if p.port, err = ChoosePort(o.Port, "Postgres", o.Report); err != nil {
		return nil, err
	}
	p.programs = bin.dir
	args := append([]string{"-D", c.data()}, settings(p.port, o.Durable)...)
	// The user may not be able to enter our directory.
	return c.user.command(context.WithoutCancel(ctx), "/", bin.postgres(), args...), nil
}

// settings are passed on the command line and not in a file, so that each start can choose another
// port and durability.
func settings(port int, durable bool) []string {
	pairs := []string{
		"listen_addresses=" + loopback,
		"port=" + strconv.Itoa(port),
		"unix_socket_directories=", // disabled, because the path of a socket may have at most 107 bytes
		"max_connections=" + strconv.Itoa(maxConnections),
		"timezone=UTC",
		"log_timezone=UTC",
		"shared_buffers=256MB", // enough for the data of a test or trial, and affordable on a laptop
	}
	if durable {
		// A checkpoint every few minutes under load, in place of every minute. After a checkpoint,
		// the first change of a page writes the whole page into the log.
		pairs = append(pairs, "max_wal_size=2GB")
	} else {
		pairs = append(pairs,
			"fsync=off", "synchronous_commit=off", "full_page_writes=off",
			"wal_level=minimal", "max_wal_senders=0", // with minimal the server refuses to start with senders
			// Each connection would compile the same statements again. The rules of the fault
			// harness took 46 s with JIT and 9 s without.
			"jit=off",
			// Autovacuum would visit hundreds of databases that exist for seconds.
			"autovacuum_naptime=1h",
		)
	}
	var args []string
	for _, pair := range pairs {
		args = append(args, "-c", pair)
	}
	return args
}

// URL returns the superuser's connection string for the database.
func (p *Postgres) URL(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, p.password),
		Host:     hostPort(p.port),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Programs returns the directory of Postgres's programs of the same version, such as pg_dump.
func (p *Postgres) Programs() string { return p.programs }

// Port returns the cluster's port. It listens only on 127.0.0.1.
func (p *Postgres) Port() int { return p.port }

// CreateDatabase creates the database if it doesn't exist. If two callers run at the same time,
// both succeed.
func (p *Postgres) CreateDatabase(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return errors.Wrap(err, "connect")
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var exists bool
	const question = `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`
	if err := conn.QueryRow(ctx, question, name).Scan(&exists); err != nil {
		return errors.Wrap(err, "look for the database")
	}
	if exists {
		return nil
	}
	_, err = conn.Exec(ctx, fmt.Sprintf("CREATE DATABASE %s", pgx.Identifier{name}.Sanitize()))
	var refused *pgconn.PgError
	if errors.As(err, &refused) && (refused.Code == "42P04" || refused.Code == "23505") {
		return nil // duplicate_database, unique_violation: another caller was faster
	}
	if err != nil {
		return errors.Wrapf(err, "create database %s", name)
	}
	return nil
}

// ping logs in with the password, so that another server on the port doesn't count.
func (p *Postgres) ping(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}
