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
	// postgresReady bounds a start; a start after a crash replays the log
	// first, which for a developer's data is a matter of seconds.
	postgresReady = 30 * time.Second
	// postgresGrace is for the checkpoint of a fast shutdown.
	postgresGrace = 20 * time.Second
	// maxConnections is enough for test packages that run side by side with a
	// pool each, and cheap: some 20 kB of shared memory a slot.
	maxConnections = 200
	// startTries: a port is lost to a neighbour once in a blue moon, twice in
	// a row never.
	startTries = 3
)

// PostgresOptions says where and how a cluster runs.
type PostgresOptions struct {
	// Dir holds the data, the password, the log: made if it isn't there. Two
	// running programs can't share one.
	Dir string
	// Port is the preferred one; if it is 0 or taken, a free one is chosen.
	Port int
	// Durable keeps data over a power cut. Without it commits are fast and a
	// crash of the machine may ruin the cluster: for tests.
	Durable bool
	// Password is the superuser's of a cluster that is made; "" makes one up.
	Password string
	// Follow makes the cluster, if there is none, as a hot standby of this one, which has
	// to run and be durable.
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

// StartPostgres makes the cluster if there is none and starts it; it returns
// when the cluster answers. Ctx bounds the start only. The error says what is
// missing on the machine, or quotes the end of the log.
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
			// Backends of a killed server notice within moments that they are
			// orphans, and until then hold its memory.
		default:
			return nil, errors.Wrapf(err, "start Postgres (end of %s follows; to begin anew remove %s)\n%s",
				p.Log(), o.Dir, Tail(p.Log(), failureLines))
		}
	}
}

// startPostgres tries once. With an error it returns a Postgres too if it came
// as far as a process, whose log then holds the reason.
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
		_ = p.Stop(ctx) // the error of the start says more
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
		dir:  "/", // the user may not be able to enter ours
		args: append([]string{"-D", c.data()}, settings(port, o.Durable)...),
		env:  postgresEnv(),
		log:  filepath.Join(o.Dir, postgresName+".log"),
		user: c.user,
		stop: syscall.SIGINT, // fast shutdown: ends sessions, writes a checkpoint
	}, held)
	if err != nil {
		return nil, err
	}
	return &Postgres{process: process, port: port, password: password, bin: bin}, nil
}

// settings go on the command line, not into a file, so that each start can
// choose another port and another durability.
func settings(port int, durable bool) []string {
	pairs := []string{
		"listen_addresses=" + loopback,
		"port=" + strconv.Itoa(port),
		"unix_socket_directories=", // a socket's path may be at most 107 bytes long
		"max_connections=" + strconv.Itoa(maxConnections),
		"timezone=UTC",
		"log_timezone=UTC",
		"shared_buffers=256MB", // what a test or a trial works on fits, and a laptop has it to spare
	}
	if durable {
		// A checkpoint each few minutes under load, and not each minute: the first change of a
		// page after it writes the whole page into the log.
		pairs = append(pairs, "max_wal_size=2GB")
	} else {
		pairs = append(pairs,
			"fsync=off", "synchronous_commit=off", "full_page_writes=off",
			"wal_level=minimal", "max_wal_senders=0", // minimal refuses to start with senders
			// Each connection would compile the same statements anew. The rules of the fault
			// harness took 46 s with it and 9 s without.
			"jit=off",
			// It would come by at each of hundreds of databases that live for seconds.
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

// Programs is the directory of Postgres's own programs, such as pg_dump, of the cluster's
// version.
func (p *Postgres) Programs() string { return p.bin.dir }

// Port returns the port that the cluster listens on, at 127.0.0.1 only.
func (p *Postgres) Port() int { return p.port }

// Log returns the path of the server's log; the previous run's is beside it
// with ".old" at its end.
func (p *Postgres) Log() string { return p.process.log }

// Done is closed when the server has ended, for whatever reason.
func (p *Postgres) Done() <-chan struct{} { return p.process.done }

// Used is the processor time of a server that has ended.
func (p *Postgres) Used() time.Duration { return p.process.used() }

// CreateDatabase makes the database if it isn't there. Two callers at the same
// time both succeed.
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
		return nil // duplicate_database, unique_violation: somebody was faster
	}
	if err != nil {
		return errors.Wrapf(err, "create database %s", name)
	}
	return nil
}

// Stop shuts the cluster down: sessions end, data is written, the process is
// waited for. If ctx ends first, or after 20 s, the shutdown becomes immediate,
// which the next start repairs, and Stop returns an error. Stopping twice is
// allowed.
func (p *Postgres) Stop(ctx context.Context) error {
	return p.process.stop(ctx, postgresGrace, syscall.SIGINT, syscall.SIGQUIT)
}

// Kill ends the server as kill -9 does and waits for it. Its sessions notice by
// themselves that they are orphans; the next start repairs what they left.
func (p *Postgres) Kill() { p.process.kill() }

// ping asks for one answer with the password, so that a stranger on the port
// doesn't count.
func (p *Postgres) ping(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var one int
	return conn.QueryRow(ctx, "SELECT 1").Scan(&one)
}
