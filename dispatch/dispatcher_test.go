package dispatch_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"earshot/dispatch"
	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/workflows"
)

func TestMain(m *testing.M) { apptest.Main(m) }

func TestDeliveriesThatWaitTogetherShareAWorkflow(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	dispatcher := dispatch.New(app.Connection, 60, testkit.Log(t))
	// The longest possible lists: every delivery has a different webhook and organization.
	deliveries := make([]change.PendingDelivery, 100)
	for i := range deliveries {
		deliveries[i] = change.PendingDelivery{
			ID: publicid.NewDelivery(), Webhook: publicid.NewWebhook(), Organization: publicid.NewOrganization(),
			EventType: "post.created", Host: fmt.Sprintf("%d.example.com", i),
		}
	}
	dispatcher.Deliver(deliveries)
	dispatcher.Drain(t.Context())
	first := app.Runs(t, fmt.Sprintf("DeliveryID = '%s'", deliveries[0].ID), 1)[0]
	require.Equal(t, deliveries[0].ID.String()+"+59", first.GetExecution().GetWorkflowId())
	for _, d := range deliveries {
		app.Runs(t, fmt.Sprintf("WebhookID = '%s'", d.Webhook), 1)
	}
}

func TestAGroupIsOfOneEventType(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	dispatcher := dispatch.New(app.Connection, 60, testkit.Log(t))
	webhook, organization := publicid.NewWebhook(), publicid.NewOrganization()
	var deliveries []change.PendingDelivery
	for range 10 {
		for _, event := range []string{"post.created", "vote.created"} {
			deliveries = append(deliveries, change.PendingDelivery{
				ID: publicid.NewDelivery(), Webhook: webhook, Organization: organization, EventType: event,
			})
		}
	}
	dispatcher.Deliver(deliveries)
	dispatcher.Drain(t.Context())
	for _, event := range []string{"post.created", "vote.created"} {
		app.Runs(t, fmt.Sprintf("WebhookID = '%s' AND EventType = '%s'", webhook, event), 1)
	}
}

func TestADeliveryStartsBeforeTheBacklogOfAnotherOrganization(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	dispatcher := dispatch.New(app.Connection, 10, testkit.Log(t))
	busy, quiet := publicid.NewOrganization(), publicid.NewOrganization()
	var deliveries []change.PendingDelivery
	for range 200 {
		deliveries = append(deliveries, change.PendingDelivery{ID: publicid.NewDelivery(), Organization: busy, EventType: "post.created"})
	}
	dispatcher.Deliver(append(deliveries, change.PendingDelivery{
		ID: publicid.NewDelivery(), Organization: quiet, EventType: "post.created",
	}))
	dispatcher.Drain(t.Context())
	single := app.Runs(t, fmt.Sprintf("OrganizationID = '%s'", quiet), 1)[0]
	before := 0
	for _, run := range app.Runs(t, fmt.Sprintf("OrganizationID = '%s'", busy), 20) {
		if run.GetStartTime().AsTime().Before(single.GetStartTime().AsTime()) {
			before++
		}
	}
	// The group whose turn it was, and one that was started concurrently.
	require.LessOrEqual(t, before, 2)
}

// TestTemporalGivesOutRunsInTurnsBetweenOrganizations needs a server with task-queue fairness, such
// as the one of internal/devstack.
func TestTemporalGivesOutRunsInTurnsBetweenOrganizations(t *testing.T) {
	t.Parallel()
	// Without a worker, the runs wait in the queue. Alone keeps runs of other tests out of it.
	app := apptest.Start(t, apptest.Options{Alone: true})
	dispatcher := dispatch.New(app.Connection, 1, testkit.Log(t))
	dispatcher.ThroughQueues()
	dispatch := func(organization publicid.Organization, n int) (last publicid.Delivery) {
		all := make([]change.PendingDelivery, n)
		for i := range all {
			last = publicid.NewDelivery()
			all[i] = change.PendingDelivery{ID: last, Organization: organization, EventType: "post.created"}
		}
		dispatcher.Deliver(all)
		return last
	}
	inQueue := func(n int64) {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			queue, err := app.Temporal.WorkflowService().DescribeTaskQueue(t.Context(), &workflowservice.DescribeTaskQueueRequest{
				Namespace: app.Connection.Namespace(), TaskQueue: &taskqueue.TaskQueue{Name: workflows.MainQueue},
				TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW, ReportStats: true,
			})
			require.NoError(c, err)
			require.GreaterOrEqual(c, queue.GetStats().GetApproximateBacklogCount(), n)
		}, testkit.Wait, testkit.Tick)
	}
	const waiting, others = 80, 5
	dispatch(publicid.NewOrganization(), waiting)
	inQueue(waiting)
	singles := map[string]bool{}
	for range others {
		singles[dispatch(publicid.NewOrganization(), 1).String()] = true
	}
	inQueue(waiting + others)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Wait)
	defer cancel()
	var turns []int
	for turn := 0; len(turns) < others; turn++ {
		task, err := app.Temporal.WorkflowService().PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{
			Namespace: app.Connection.Namespace(),
			TaskQueue: &taskqueue.TaskQueue{Name: workflows.MainQueue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		})
		require.NoError(t, err)
		if singles[task.GetWorkflowExecution().GetWorkflowId()] {
			turns = append(turns, turn)
		}
	}
	// Each of the queue's four partitions hands out its runs in turns, and each poll asks a random
	// partition. Without turns, the first of the five would come behind some twenty earlier runs of
	// its partition.
	require.Less(t, turns[0], waiting/5, "they came behind %v others", turns)
}

func TestARunHasTheFairnessKeyOfItsOrganizationAndASharedOneHasNone(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	dispatcher := dispatch.New(app.Connection, 2, testkit.Log(t))
	pending := func(organization publicid.Organization) change.PendingDelivery {
		return change.PendingDelivery{ID: publicid.NewDelivery(), Organization: organization, EventType: "post.created"}
	}
	alone, first, second := publicid.NewOrganization(), publicid.NewOrganization(), publicid.NewOrganization()
	dispatcher.Deliver([]change.PendingDelivery{pending(alone), pending(alone), pending(first), pending(second)})
	dispatcher.Drain(t.Context())
	for organization, key := range map[publicid.Organization]string{alone: alone.String(), first: "", second: ""} {
		run := app.Runs(t, fmt.Sprintf("OrganizationID = '%s'", organization), 1)[0].GetExecution()
		described, err := app.Temporal.DescribeWorkflowExecution(t.Context(), run.GetWorkflowId(), run.GetRunId())
		require.NoError(t, err)
		require.Equal(t, key, described.GetWorkflowExecutionInfo().GetPriority().GetFairnessKey())
	}
}
