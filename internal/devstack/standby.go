package devstack

import (
	"bytes"
	"context"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// standbyPoll is the interval for checking whether the standby follows.
const standbyPoll = 20 * time.Millisecond

// copyOf creates the cluster as a standby of a running one. It copies the files, and the standby
// follows the primary from its start on.
func (c cluster) copyOf(ctx context.Context, bin binaries, primary *Postgres, report Report) (password string, err error) {
	report.say("copying the Postgres at port %d into %s", primary.port, c.home)
	if err := c.writePassword(primary.password); err != nil {
		return "", err
	}
	if err := c.makeHalf(); err != nil {
		return "", err
	}
	cmd := c.user.command(ctx, "/", filepath.Join(bin.dir, "pg_basebackup"),
		"--host="+loopback, "--port="+strconv.Itoa(primary.port), "--username="+superuser, "--pgdata="+c.halfMade(),
		"--write-recovery-conf", "--checkpoint=fast", "--no-sync")
	// The environment hides the password; all users of the machine can read arguments.
	cmd.Env = append(cmd.Env, "PGPASSWORD="+primary.password)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Wrapf(err, "run pg_basebackup: %s", bytes.TrimSpace(out))
	}
	return primary.password, c.putInPlace()
}

// Synchronize makes each later commit wait until a standby has it, too. It returns when a standby
// follows. Ctx bounds the wait.
func (p *Postgres) Synchronize(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return errors.Wrap(err, "connect")
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return errors.Wrap(err, "make commits wait for the standby")
		}
	}
	tick := time.NewTicker(standbyPoll)
	defer tick.Stop()
	for {
		var follows bool
		const question = `SELECT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync')`
		if err := conn.QueryRow(ctx, question).Scan(&follows); err != nil {
			return errors.Wrap(err, "look for the standby")
		}
		if follows {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Wrap(ctx.Err(), "wait for the standby to follow")
		case <-tick.C:
		}
	}
}

// Promote makes a standby the primary and returns when it accepts writes.
func (p *Postgres) Promote(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return errors.Wrap(err, "connect")
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var promoted bool
	if err := conn.QueryRow(ctx, "SELECT pg_promote()").Scan(&promoted); err != nil {
		return errors.Wrap(err, "promote")
	}
	if !promoted {
		return errors.New("promote: the standby did not become a primary within a minute")
	}
	return nil
}
