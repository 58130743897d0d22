package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"earshot/dispatch"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/worker"
	"earshot/workflows"
)

// described waits for a schedule and returns it.
func described(t *testing.T, c client.Client, id string) *client.ScheduleDescription {
	t.Helper()
	var found *client.ScheduleDescription
	require.EventuallyWithT(t, func(collect *assert.CollectT) {
		var err error
		found, err = c.ScheduleClient().GetHandle(t.Context(), id).Describe(t.Context())
		require.NoError(collect, err)
	}, testkit.Wait, testkit.Tick)
	return found
}

func TestTheSweepRunsEveryMinuteAndTheRetentionEveryHour(t *testing.T) {
	t.Parallel()
	app := scrapable.Start(t)
	for id, every := range map[string]time.Duration{workflows.SweepSchedule: time.Minute, workflows.RetentionSchedule: time.Hour} {
		s := described(t, app.Temporal, id).Schedule
		require.Equal(t, []client.ScheduleIntervalSpec{{Every: every}}, s.Spec.Intervals, id)
		require.Equal(t, id, s.Action.(*client.ScheduleWorkflowAction).Workflow)
	}
}

func TestADeletedScheduleComesBackWhileTheServiceRuns(t *testing.T) {
	t.Parallel()
	often := func(o worker.Options) worker.Options {
		o.SchedulesEvery = 100 * time.Millisecond
		return o
	}
	app := apptest.Start(t, apptest.Options{Worker: true, DatabaseURL: testkit.SharedDatabase(t), Decorate: []any{often}})
	for _, id := range []string{workflows.SweepSchedule, workflows.RetentionSchedule} {
		made := described(t, app.Temporal, id).Info.CreatedAt
		require.NoError(t, app.Temporal.ScheduleClient().GetHandle(t.Context(), id).Delete(t.Context()))
		require.Eventually(t, func() bool {
			d, err := app.Temporal.ScheduleClient().GetHandle(t.Context(), id).Describe(t.Context())
			return err == nil && d.Info.CreatedAt.After(made)
		}, testkit.Wait, 50*time.Millisecond, id)
	}
}

func TestAProcessThatStartsMendsAScheduleAndLeavesItPaused(t *testing.T) {
	t.Parallel()
	temporal, database := testkit.Namespace(t), testkit.SharedDatabase(t)
	app := apptest.Start(t, apptest.Options{Worker: true, Temporal: &temporal, DatabaseURL: database})
	described(t, app.Temporal, workflows.SweepSchedule)
	h := app.Temporal.ScheduleClient().GetHandle(t.Context(), workflows.SweepSchedule)
	require.NoError(t, h.Update(t.Context(), client.ScheduleUpdateOptions{
		DoUpdate: func(is client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			is.Description.Schedule.Spec.Intervals[0].Every = 24 * time.Hour
			return &client.ScheduleUpdate{Schedule: &is.Description.Schedule}, nil
		},
	}))
	awaitSchedule(t, app.Temporal, func(d *client.ScheduleDescription) bool {
		return d.Schedule.Spec.Intervals[0].Every == 24*time.Hour
	})
	require.NoError(t, h.Pause(t.Context(), client.SchedulePauseOptions{Note: "while we move house"}))
	awaitSchedule(t, app.Temporal, func(d *client.ScheduleDescription) bool { return d.Schedule.State.Paused })

	apptest.Start(t, apptest.Options{Worker: true, Temporal: &temporal, DatabaseURL: database})
	awaitSchedule(t, app.Temporal, func(d *client.ScheduleDescription) bool {
		return d.Schedule.Spec.Intervals[0].Every == time.Minute
	})
	state := described(t, app.Temporal, workflows.SweepSchedule).Schedule.State
	require.True(t, state.Paused)
	require.Equal(t, "while we move house", state.Note)
}

// awaitSchedule waits until is accepts the sweep's schedule. Temporal applies changes
// asynchronously.
func awaitSchedule(t *testing.T, c client.Client, is func(*client.ScheduleDescription) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return is(described(t, c, workflows.SweepSchedule)) }, testkit.Wait, testkit.Tick)
}

func TestAScheduleThatIsAsItShouldBeIsNotTouched(t *testing.T) {
	t.Parallel()
	temporal := testkit.Namespace(t)
	app := apptest.Start(t, apptest.Options{Worker: true, Temporal: &temporal, DatabaseURL: testkit.SharedDatabase(t)})
	require.NoError(t, dispatch.EnsureSchedules(t.Context(), app.Temporal))
	// Temporal applies the requests to a schedule in order, so an update would come before the
	// pause.
	h := app.Temporal.ScheduleClient().GetHandle(t.Context(), workflows.SweepSchedule)
	require.NoError(t, h.Pause(t.Context(), client.SchedulePauseOptions{}))
	awaitSchedule(t, app.Temporal, func(d *client.ScheduleDescription) bool { return d.Schedule.State.Paused })
	for _, id := range []string{workflows.SweepSchedule, workflows.RetentionSchedule} {
		require.Zero(t, described(t, app.Temporal, id).Info.LastUpdateAt.Unix(), id)
	}
}
