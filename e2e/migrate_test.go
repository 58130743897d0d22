package e2e

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
)

// execute runs a statement directly in a database.
func execute(t *testing.T, database, sql string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { _ = c.Close(context.Background()) }()
	_, err = c.Exec(t.Context(), sql)
	require.NoError(t, err)
}

// schemaStatus is the output of `earshot migrate status --json`.
type schemaStatus struct {
	Version, Pending int64
	Migrations       []struct {
		Version   int64
		Name      string
		AppliedAt *time.Time
	}
}

func (p *program) schema() (s schemaStatus) {
	p.t.Helper()
	p.json(&s, "migrate", "status", "--json")
	return s
}

func TestAnOperatorSeesThePlanOfAMigrationBeforeItRuns(t *testing.T) {
	t.Parallel()
	database := testkit.EmptyDatabase(t)
	p := &program{t: t, env: append(cleanEnviron(), "DATABASE_URL="+database)}
	empty := p.schema()
	require.Zero(t, empty.Version)
	require.Len(t, empty.Migrations, int(empty.Pending))
	out, err := p.command("migrate", "plan")
	require.NoError(t, err, out)
	require.Contains(t, out, "20261121000000_initial.sql: in one transaction, locks until its end\n")
	require.Contains(t, out, `  CREATE TABLE "organizations" (`)
	require.Contains(t, out, "    → deliveries: SHARE, writes wait, reads go on; reads the whole table, 0.0 MB with about 0 rows\n")
	require.Contains(t, out, "    → webhooks: ACCESS EXCLUSIVE, reads and writes wait; writes the whole table anew")
	out, err = p.command("migrate", "status")
	require.NoError(t, err, out)
	require.Contains(t, out, "no schema yet")
	require.Equal(t, empty, p.schema(), "to look changes nothing")

	out, err = p.command("migrate", "up", "--json")
	require.NoError(t, err, out)
	var done struct{ Applied []string }
	require.NoError(t, json.Unmarshal([]byte(out), &done))
	require.Len(t, done.Applied, len(empty.Migrations))
	full := p.schema()
	require.Zero(t, full.Pending)
	require.WithinDuration(t, time.Now(), *full.Migrations[0].AppliedAt, commandTimeout)
	out, err = p.command("migrate", "plan")
	require.NoError(t, err, out)
	require.Equal(t, "the schema is up to date: nothing to do\n", out)

	execute(t, database, `DELETE FROM goose_db_version WHERE version_id = 20261122054022`)
	execute(t, database, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (29990101000000, true)`)
	out, err = p.command("migrate", "status")
	require.NoError(t, err, out)
	require.Regexp(t, `hash_members_addresses.sql +pending\n`, out)
	require.Regexp(t, `29990101000000, of a later version of the program +applied `, out)
	out, err = p.command("migrate", "plan")
	require.NoError(t, err, out)
	require.Contains(t, out, "Together, until the end:\n    comments: writes wait, reads go on\n    votes: reads and writes wait\n")
	var plan struct {
		Migrations []struct {
			Name       string
			Statements []struct {
				SQL    string
				Tables []struct{ Table, Lock, Waits string }
			}
		}
	}
	p.json(&plan, "migrate", "plan", "--json")
	require.Len(t, plan.Migrations, 1)
	drop := plan.Migrations[0].Statements[1]
	require.Equal(t, `DROP INDEX "vote_post_id_email_hash";`, drop.SQL)
	require.Equal(t, []struct{ Table, Lock, Waits string }{{"votes", "ACCESS EXCLUSIVE", "reads and writes wait"}}, drop.Tables)
}
