package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/go-faster/errors"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"earshot/activities"
	"earshot/workflows"
)

const (
	// The sweep runs once a minute, because starts are lost only when a process dies or Temporal
	// is down. It takes deliveries that are overdue by sweepGrace. A healthy delivery waits for
	// its start for a few seconds at most.
	sweepEvery = time.Minute
	sweepGrace = 30 * time.Second
	// Expired rows do no harm. Once an hour keeps each run short.
	retentionEvery = time.Hour
)

// schedules is the table of scheduled workflows. Temporal shows the note to operators until they
// pause the schedule with their own note.
func schedules() []client.ScheduleOptions {
	return []client.ScheduleOptions{
		every(sweepEvery, workflows.SweepSchedule, "Starts deliveries whose start was lost.", &client.ScheduleWorkflowAction{
			Workflow: workflows.SweepOutboxName, Args: []any{activities.SweepParams{Grace: sweepGrace}},
		}),
		every(retentionEvery, workflows.RetentionSchedule, "Removes rows that are older than EARSHOT_RETENTION.", &client.ScheduleWorkflowAction{
			Workflow: workflows.RemoveExpiredName,
		}),
	}
}

func every(d time.Duration, id, note string, action *client.ScheduleWorkflowAction) client.ScheduleOptions {
	action.ID, action.TaskQueue = id, workflows.MainQueue
	return client.ScheduleOptions{
		ID: id, Note: note, Action: action,
		Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: d}}},
		// After an outage, the next run makes up for the missed ones.
		CatchupWindow: 2 * d,
		Overlap:       enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
	}
}

// EnsureSchedules creates missing schedules and updates existing ones to this version of the code. It
// keeps the operator's pauses and notes.
func EnsureSchedules(ctx context.Context, c client.Client) error {
	for _, wanted := range schedules() {
		made, err := makeSchedule(ctx, c, wanted)
		if err != nil {
			return err
		}
		if !made {
			err = updateSchedule(ctx, c, wanted)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// RestoreSchedules recreates deleted schedules and returns their ids. It leaves existing schedules
// alone, so an operator's changes stay until the next process starts.
func RestoreSchedules(ctx context.Context, c client.Client) (restored []string, err error) {
	for _, wanted := range schedules() {
		made, err := makeSchedule(ctx, c, wanted)
		if err != nil {
			return restored, err
		}
		if made {
			restored = append(restored, wanted.ID)
		}
	}
	return restored, nil
}

// makeSchedule returns false if the schedule exists.
func makeSchedule(ctx context.Context, c client.Client, wanted client.ScheduleOptions) (bool, error) {
	_, err := c.ScheduleClient().Create(ctx, wanted)
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return false, nil
	}
	if err != nil {
		return false, errors.Wrapf(err, "create the schedule %s", wanted.ID)
	}
	return true, nil
}

func updateSchedule(ctx context.Context, c client.Client, wanted client.ScheduleOptions) error {
	err := c.ScheduleClient().GetHandle(ctx, wanted.ID).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(is client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			same, err := isAsWanted(is.Description.Schedule, wanted)
			if err != nil {
				return nil, err
			}
			if same {
				return nil, temporal.ErrSkipScheduleUpdate
			}
			return &client.ScheduleUpdate{Schedule: &client.Schedule{
				Action: wanted.Action,
				Spec:   &wanted.Spec,
				Policy: &client.SchedulePolicies{Overlap: wanted.Overlap, CatchupWindow: wanted.CatchupWindow},
				State:  is.Description.Schedule.State,
			}}, nil
		},
	})
	if err != nil {
		return errors.Wrapf(err, "update the schedule %s", wanted.ID)
	}
	return nil
}

// isAsWanted compares the fields that the table above sets, and the other fields that affect the
// times of the runs.
func isAsWanted(is client.Schedule, wanted client.ScheduleOptions) (bool, error) {
	does, ok := is.Action.(*client.ScheduleWorkflowAction)
	if !ok {
		return false, nil
	}
	should, _ := wanted.Action.(*client.ScheduleWorkflowAction) // every makes no other
	args, err := converter.GetDefaultDataConverter().ToPayloads(should.Args...)
	if err != nil {
		return false, errors.Wrapf(err, "encode the arguments of %s", wanted.ID)
	}
	sameArgs := slices.EqualFunc(does.Args, args.GetPayloads(), func(has any, want *commonpb.Payload) bool {
		payload, ok := has.(*commonpb.Payload)
		return ok && proto.Equal(payload, want)
	})
	return sameArgs && does.Workflow == should.Workflow && does.TaskQueue == should.TaskQueue && does.ID == should.ID &&
		slices.Equal(is.Spec.Intervals, wanted.Spec.Intervals) && len(is.Spec.Calendars)+len(is.Spec.Skip) == 0 &&
		is.Policy.Overlap == wanted.Overlap && is.Policy.CatchupWindow == wanted.CatchupWindow, nil
}
