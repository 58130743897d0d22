package production

import (
	"bytes"
	"context"
	"net/url"
	"os/exec"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/devstack"
	"earshot/internal/devstack/process"
)

// standbyPoll is the interval for checking whether the standby follows.
const standbyPoll = 20 * time.Millisecond

// Following completes the options of a new cluster, so that it becomes a hot standby of the primary.
// It copies the primary's files, and follows the primary from its start on. The primary has to run
// and be durable.
func Following(primary *devstack.Postgres, o devstack.PostgresOptions) (devstack.PostgresOptions, error) {
	at, err := url.Parse(primary.URL("postgres"))
	if err != nil {
		return o, errors.Wrap(err, "read the primary's address")
	}
	o.Password, _ = at.User.Password()
	o.Make = func(data string, command func(program string, args ...string) *exec.Cmd) error {
		cmd := command("pg_basebackup",
			"--host="+at.Hostname(), "--port="+at.Port(), "--username="+at.User.Username(), "--pgdata="+data,
			"--write-recovery-conf", "--checkpoint=fast", "--no-sync")
		// The environment hides the password; all users of the machine can read arguments.
		cmd.Env = append(cmd.Env, "PGPASSWORD="+o.Password)
		if out, err := cmd.CombinedOutput(); err != nil {
			return errors.Wrapf(err, "run pg_basebackup: %s", bytes.TrimSpace(out))
		}
		return nil
	}
	return o, nil
}

// Synchronize makes each later commit of the primary wait until a standby has it, too. It returns
// when a standby follows. Ctx bounds the wait.
func Synchronize(ctx context.Context, primary *devstack.Postgres) error {
	conn, err := pgx.Connect(ctx, primary.URL("postgres"))
	if err != nil {
		return errors.Wrap(err, "connect")
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return errors.Wrap(err, "make commits wait for the standby")
		}
	}
	err = process.Poll(ctx, standbyPoll, func() (follows bool, err error) {
		const question = `SELECT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync')`
		err = conn.QueryRow(ctx, question).Scan(&follows)
		return follows, err
	})
	if err != nil {
		return errors.Wrap(err, "wait for the standby to follow")
	}
	return nil
}

// Promote makes a standby the primary and returns when it accepts writes.
func Promote(ctx context.Context, standby *devstack.Postgres) error {
	conn, err := pgx.Connect(ctx, standby.URL("postgres"))
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
