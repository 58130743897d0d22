package workflows_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"earshot/internal/feedback"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/workflows"
)

// runs waits until the visibility query finds so many and returns them.
func runs(t *testing.T, app *testkit.App, query string, n int) []*workflow.WorkflowExecutionInfo {
	t.Helper()
	var found []*workflow.WorkflowExecutionInfo
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		answer, err := app.Temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		require.NoError(c, err)
		found = answer.GetExecutions()
		require.Len(c, found, n)
	}, testkit.Wait, 50*time.Millisecond)
	return found
}

func TestAnIdleServiceStartsOneWorkflowPerDeliveryUnderItsOwnID(t *testing.T) {
	t.Parallel()
	b := setup(t, testkit.Options{})
	b.post(t)
	d := b.delivery(t, "pending")
	run := runs(t, b.app, fmt.Sprintf("WebhookID = '%s' AND EventType = 'post.created'", b.webhook), 1)[0]
	require.Equal(t, d["id"], run.GetExecution().GetWorkflowId())
}

func TestDeliveriesThatWaitTogetherShareAWorkflow(t *testing.T) {
	t.Parallel()
	b := setup(t, testkit.Options{})
	starter := workflows.NewStarter(b.app.Connection, 60, testkit.Log(t))
	// As long as the lists get: every delivery has another webhook and another
	// organization.
	deliveries := make([]feedback.Dispatch, 100)
	for i := range deliveries {
		deliveries[i] = feedback.Dispatch{
			ID: publicid.NewDelivery(), Webhook: publicid.NewWebhook(), Organization: publicid.NewOrganization(),
			EventType: "post.created", Host: fmt.Sprintf("%d.example.com", i),
		}
	}
	starter.Dispatch(deliveries)
	starter.Drain(t.Context())
	first := runs(t, b.app, fmt.Sprintf("DeliveryID = '%s'", deliveries[0].ID), 1)[0]
	require.Equal(t, deliveries[0].ID.String()+"+59", first.GetExecution().GetWorkflowId())
	for _, d := range deliveries {
		runs(t, b.app, fmt.Sprintf("WebhookID = '%s'", d.Webhook), 1)
	}
}

func TestAGroupIsOfOneEventType(t *testing.T) {
	t.Parallel()
	b := setup(t, testkit.Options{})
	starter := workflows.NewStarter(b.app.Connection, 60, testkit.Log(t))
	webhook, organization := publicid.NewWebhook(), publicid.NewOrganization()
	var deliveries []feedback.Dispatch
	for range 10 {
		for _, event := range []string{"post.created", "vote.created"} {
			deliveries = append(deliveries, feedback.Dispatch{
				ID: publicid.NewDelivery(), Webhook: webhook, Organization: organization, EventType: event,
			})
		}
	}
	starter.Dispatch(deliveries)
	starter.Drain(t.Context())
	for _, event := range []string{"post.created", "vote.created"} {
		runs(t, b.app, fmt.Sprintf("WebhookID = '%s' AND EventType = '%s'", webhook, event), 1)
	}
}

func TestADeliveryIsStartedBeforeWhatAnotherOrganizationHadWaiting(t *testing.T) {
	t.Parallel()
	b := setup(t, testkit.Options{})
	starter := workflows.NewStarter(b.app.Connection, 10, testkit.Log(t))
	busy, quiet := publicid.NewOrganization(), publicid.NewOrganization()
	var deliveries []feedback.Dispatch
	for range 500 {
		deliveries = append(deliveries, feedback.Dispatch{ID: publicid.NewDelivery(), Organization: busy, EventType: "post.created"})
	}
	starter.Dispatch(append(deliveries, feedback.Dispatch{
		ID: publicid.NewDelivery(), Organization: quiet, EventType: "post.created",
	}))
	starter.Drain(t.Context())
	single := runs(t, b.app, fmt.Sprintf("OrganizationID = '%s'", quiet), 1)[0]
	before := 0
	for _, run := range runs(t, b.app, fmt.Sprintf("OrganizationID = '%s'", busy), 50) {
		if run.GetStartTime().AsTime().Before(single.GetStartTime().AsTime()) {
			before++
		}
	}
	// The one whose turn it was, and one that was started at the same time.
	require.LessOrEqual(t, before, 2)
}

// TestTemporalGivesOutRunsInTurnsBetweenOrganizations needs a server with task-queue
// fairness, as internal/devstack starts it.
func TestTemporalGivesOutRunsInTurnsBetweenOrganizations(t *testing.T) {
	t.Parallel()
	b := setup(t, testkit.Options{}) // without a worker: the runs wait in the queue
	starter := workflows.NewStarter(b.app.Connection, 1, testkit.Log(t))
	starter.ThroughQueues()
	dispatch := func(organization publicid.Organization, n int) (last publicid.Delivery) {
		all := make([]feedback.Dispatch, n)
		for i := range all {
			last = publicid.NewDelivery()
			all[i] = feedback.Dispatch{ID: last, Organization: organization, EventType: "post.created"}
		}
		starter.Dispatch(all)
		return last
	}
	const waiting = 100
	dispatch(publicid.NewOrganization(), waiting)
	runs(t, b.app, "ExecutionStatus = 'Running'", waiting)
	single := dispatch(publicid.NewOrganization(), 1)
	runs(t, b.app, "ExecutionStatus = 'Running'", waiting+1)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Wait)
	defer cancel()
	before := 0
	for next := ""; next != single.String(); before++ {
		task, err := b.app.Temporal.WorkflowService().PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{
			Namespace: b.app.Connection.Namespace(),
			TaskQueue: &taskqueue.TaskQueue{Name: workflows.MainQueue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		})
		require.NoError(t, err)
		next = task.GetWorkflowExecution().GetWorkflowId()
	}
	// Of four partitions each has what it holds in turns.
	require.Less(t, before, waiting/3)
}

func TestStartingADeliveryTwiceAttemptsItOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, testkit.Options{Worker: true})
	b.post(t)
	d := b.delivery(t, "succeeded")
	starter := workflows.NewStarter(b.app.Connection, 60, testkit.Log(t))
	id, err := publicid.Parse[publicid.Delivery](fmt.Sprint(d["id"]))
	require.NoError(t, err)
	webhook, err := publicid.Parse[publicid.Webhook](b.webhook)
	require.NoError(t, err)
	starter.Dispatch([]feedback.Dispatch{{
		ID: id, Webhook: webhook, Organization: b.tenant.Organization.ID, EventType: "post.created",
	}})
	starter.Drain(t.Context())
	require.NoError(t, b.app.Temporal.GetWorkflow(t.Context(), id.String(), "").Get(t.Context(), nil))
	require.Len(t, b.receiver.All(), 1)
}

func TestNothingSecretOrPersonalEntersAHistory(t *testing.T) {
	t.Parallel()
	b := setup(t, testkit.Options{Worker: true})
	b.receiver.Answer(answers(500))
	hidden := b.receiver.URL + "?token=very-secret"
	b.tenant.Make(t, http.MethodPatch, "/v1/webhooks/"+b.webhook, map[string]any{"url": hidden})
	b.post(t)
	id := b.receiver.Await(t, 2)[0].DeliveryID()
	require.NoError(t, b.app.Temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	var history strings.Builder
	events := b.app.Temporal.GetWorkflowHistory(t.Context(), id, "", false, 0)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		history.WriteString(protojson.Format(event))
		for _, p := range event.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads() {
			history.Write(p.GetData())
		}
	}
	require.Contains(t, history.String(), b.webhook)
	for _, text := range []string{"whsec_", "very-secret", "/hook", "Dark mode"} {
		require.NotContains(t, history.String(), text)
	}
}
