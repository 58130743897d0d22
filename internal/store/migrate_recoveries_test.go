package store_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db/recovery"
	"earshot/ent/migrations"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
)

func TestOfRecoveriesThatRanBesideEachOtherTheOldestGoesOnAfterTheMigration(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	o, c := another(t, open(t, url), poolOf(t, url)), connect(t, url)
	_, err := c.Exec(t.Context(), `DROP INDEX recovery_webhook_id`)
	require.NoError(t, err)
	begin := func(o *outbox, status recovery.Status) publicid.Recovery {
		return o.store.Client().Recovery.Create().SetWebhookID(o.webhook).SetSince(ago(2 * grace)).SetUntil(ago(grace)).
			SetStatus(status).SaveX(o.ctx).ID
	}
	ended, oldest := begin(o, recovery.StatusCompleted), begin(o, recovery.StatusRunning)
	newer := []publicid.Recovery{begin(o, recovery.StatusRunning), begin(o, recovery.StatusRunning)}
	others := another(t, o.store, o.pool)
	alone := begin(others, recovery.StatusRunning)

	_, err = c.Exec(t.Context(), up(t, "one_recovery_a_webhook"))
	require.NoError(t, err)
	for _, id := range newer {
		r := o.store.Client().Recovery.GetX(o.ctx, id)
		require.Equal(t, recovery.StatusStopped, r.Status)
		require.Equal(t, "canceled", *r.StoppedReason)
		require.NotNil(t, r.EndedAt)
	}
	require.Equal(t, recovery.StatusCompleted, o.store.Client().Recovery.GetX(o.ctx, ended).Status)
	require.Equal(t, recovery.StatusRunning, o.store.Client().Recovery.GetX(o.ctx, oldest).Status)
	require.Equal(t, recovery.StatusRunning, others.store.Client().Recovery.GetX(others.ctx, alone).Status)
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
