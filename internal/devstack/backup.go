package devstack

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// Dump writes a database, as it is at this moment, into a file that isn't there.
func (p *Postgres) Dump(ctx context.Context, database, file string) error {
	return p.tool(ctx, "pg_dump", "--format=custom", "--dbname="+database, "--file="+file)
}

// Restore puts a database that was dumped into the place of the one of that name. Who is
// connected to that loses the connection.
func (p *Postgres) Restore(ctx context.Context, database, file string) error {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return errors.Wrap(err, "connect")
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{database}.Sanitize()+" WITH (FORCE)"); err != nil {
		return errors.Wrapf(err, "drop database %s", database)
	}
	return p.tool(ctx, "pg_restore", "--create", "--exit-on-error", "--dbname=postgres", file)
}

// tool runs one of Postgres's clients.
func (p *Postgres) tool(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin.dir, name), args...)
	cmd.Env = append(postgresEnv(), "PGHOST="+loopback, "PGPORT="+strconv.Itoa(p.port), "PGUSER="+superuser, "PGPASSWORD="+p.password)
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Wrapf(err, "run %s: %s", name, bytes.TrimSpace(out))
	}
	return nil
}
