package devstack

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	postgresName = "postgres"
	// postgresReady bounds a start. After a crash the start replays the log, which takes seconds
	// with a developer's data.
	postgresReady = 30 * time.Second
	// postgresGrace allows for the checkpoint of a fast shutdown.
	postgresGrace = 20 * time.Second
	// maxConnections is enough for test packages that run in parallel with a pool each. A slot
	// costs only about 20 kB of shared memory.
	maxConnections = 200
	// startTries bounds the starts with a new port. Losing a port to another process is rare, and
	// losing two in a row is practically impossible.
	startTries = 3
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
	// Follow creates a new cluster as a hot standby of this one, which has to run and be durable.
	Follow *Postgres
	Report Report
}

// Postgres is a running cluster. It ends with this program.
type Postgres struct {
	process  *child
	port     int
	password string
	bin      binaries
}

// StartPostgres creates the cluster if there is none, starts it, and returns when it answers. Ctx
// bounds only the start. The error names the programs that are missing, or quotes the end of the
// log.
func StartPostgres(ctx context.Context, o PostgresOptions) (*Postgres, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, errors.Wrap(err, "find the directory")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, errors.Wrap(err, "make the directory")
	}
	o.Dir = dir
	deadline := time.Now().Add(postgresReady)
	for try := 1; ; try++ {
		p, err := startPostgres(ctx, o)
		if err == nil {
			return p, nil
		}
		switch {
		case ctx.Err() != nil:
			return nil, errors.Wrap(ctx.Err(), "start Postgres")
		case p == nil:
			return nil, errors.Wrap(err, "start Postgres")
		case p.process.logSays("address already in use") && try < startTries:
			o.Port = 0
		case p.process.logSays("pre-existing shared memory") && time.Now().Before(deadline):
			// Backends of a killed server notice within moments that they are orphans. Until then
			// they hold its memory.
		default:
			return nil, errors.Wrapf(err, "start Postgres (end of %s follows; to begin anew remove %s)\n%s",
				p.Log(), o.Dir, Tail(p.Log(), failureLines))
		}
	}
}

// startPostgres tries once. On an error it also returns a Postgres if the process was started,
// because its log contains the cause.
func startPostgres(ctx context.Context, o PostgresOptions) (*Postgres, error) {
	held, err := takeClaim(ctx, o.Dir, postgresName, syscall.SIGINT, o.Report)
	if err != nil {
		return nil, err
	}
	p, err := launchPostgres(ctx, o, held)
	if err != nil {
		held.release()
		return nil, err
	}
	if err := p.process.awaitReady(ctx, postgresReady, p.ping); err != nil {
		_ = p.Stop(ctx) // the error of the start is more useful
		return p, err
	}
	return p, nil
}

func launchPostgres(ctx context.Context, o PostgresOptions, held *claim) (*Postgres, error) {
	bin, err := findBinaries(ctx, madeBy(o.Dir), o.Report)
	if err != nil {
		return nil, err
	}
	c, err := openCluster(ctx, o.Dir, bin, o.Report)
	if err != nil {
		return nil, err
	}
	password, err := c.password(ctx, bin, o)
	if err != nil {
		return nil, err
	}
	port, err := choosePort(o.Port, "Postgres", o.Report)
	if err != nil {
		return nil, err
	}
	process, err := startChild(spec{
		name: postgresName,
		path: bin.postgres(),
		dir:  "/", // the user may not be able to enter our directory
		args: append([]string{"-D", c.data()}, settings(port, o.Durable)...),
		env:  postgresEnv(),
		log:  filepath.Join(o.Dir, postgresName+".log"),
		user: c.user,
		stop: syscall.SIGINT, // a fast shutdown: ends sessions, writes a checkpoint
	}, held)
	if err != nil {
		return nil, err
	}
	return &Postgres{process: process, port: port, password: password, bin: bin}, nil
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
func (p *Postgres) Programs() string { return p.bin.dir }

// Port returns the cluster's port. It listens only on 127.0.0.1.
func (p *Postgres) Port() int { return p.port }

// Log returns the path of the server's log. The previous run's log is beside it with the suffix
// ".old".
func (p *Postgres) Log() string { return p.process.log }

// Done returns a channel that is closed when the server has ended for any reason.
func (p *Postgres) Done() <-chan struct{} { return p.process.done }

// Used returns the processor time of a server that has ended.
func (p *Postgres) Used() time.Duration { return p.process.used() }

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

// Stop shuts the cluster down: it ends the sessions, writes the data, and waits for the process. If
// ctx ends first, or after 20 s, Stop shuts the server down immediately and returns an error. The
// next start then recovers the data. Stopping twice is allowed.
func (p *Postgres) Stop(ctx context.Context) error {
	return p.process.stop(ctx, postgresGrace, syscall.SIGINT, syscall.SIGQUIT)
}

// Kill ends the server like kill -9 and waits for it. Its sessions notice by themselves that they
// are orphans. The next start recovers the data.
func (p *Postgres) Kill() { p.process.kill() }

// ping requires an answer with the right password, so that another server on the port doesn't
// count.
func (p *Postgres) ping(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var one int
	return conn.QueryRow(ctx, "SELECT 1").Scan(&one)
}
