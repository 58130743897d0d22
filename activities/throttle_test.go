package activities_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
)

// The limit is one a second. The first delivery has a token, the second gets one a second later,
// and the third's turn is another second later. When the round ends, at least half of the third's
// wait is over.
func TestATurnCountsFromWhenItWasGivenAndNotFromTheEndOfTheRound(t *testing.T) {
	t.Parallel()
	d := newDue(t, 3)
	d.store.Client().Webhook.UpdateOneID(d.webhook).SetMaxPerSecond(1).ExecX(d.ctx)
	result := d.attempt(t, testkit.NewLogs().Logger())
	require.Len(t, result.Pending, 1)
	require.LessOrEqual(t, result.Pending[0].In, time.Second+10*time.Millisecond)
	row := d.store.Client().Delivery.GetX(d.ctx, result.Pending[0].ID)
	require.Greater(t, row.NextAttemptAt.Sub(row.CreatedAt), time.Second)
	require.Less(t, time.Until(*row.NextAttemptAt), time.Second)
	require.NotNil(t, row.WorkflowID)
}
