package migrate_test

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db/recovery"
	"earshot/ent/migrations"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

func TestOfRecoveriesThatRanBesideEachOtherTheOldestGoesOnAfterTheMigration(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	o, c := fixture.Another(t, fixture.Open(t, url), fixture.PoolOf(t, url)), fixture.Connect(t, url)
	_, err := c.Exec(t.Context(), `DROP INDEX recovery_webhook_id`)
	require.NoError(t, err)
	begin := func(o *fixture.Outbox, status recovery.Status) publicid.Recovery {
		return o.Store.Client().Recovery.Create().SetWebhookID(o.Webhook).SetSince(fixture.Ago(20 * time.Minute)).SetUntil(fixture.Ago(10 * time.Minute)).
			SetStatus(status).SaveX(o.Ctx).ID
	}
	ended, oldest := begin(o, recovery.StatusCompleted), begin(o, recovery.StatusRunning)
	newer := []publicid.Recovery{begin(o, recovery.StatusRunning), begin(o, recovery.StatusRunning)}
	others := fixture.Another(t, o.Store, o.Pool)
	alone := begin(others, recovery.StatusRunning)

	_, err = c.Exec(t.Context(), up(t, "one_recovery_a_webhook"))
	require.NoError(t, err)
	for _, id := range newer {
		r := o.Store.Client().Recovery.GetX(o.Ctx, id)
		require.Equal(t, recovery.StatusStopped, r.Status)
		require.Equal(t, "canceled", *r.StoppedReason)
		require.NotNil(t, r.EndedAt)
	}
	require.Equal(t, recovery.StatusCompleted, o.Store.Client().Recovery.GetX(o.Ctx, ended).Status)
	require.Equal(t, recovery.StatusRunning, o.Store.Client().Recovery.GetX(o.Ctx, oldest).Status)
	require.Equal(t, recovery.StatusRunning, others.Store.Client().Recovery.GetX(others.Ctx, alone).Status)
}

// up returns the Up part of a migration, by the end of its name.
func up(t *testing.T, name string) string {
	t.Helper()
	files, err := fs.Glob(migrations.FS, "*_"+name+".sql")
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := fs.ReadFile(migrations.FS, files[0])
	require.NoError(t, err)
	before, _, _ := strings.Cut(string(text), "-- +goose Down")
	return before
}
