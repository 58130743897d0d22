package workflows_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"earshot/activities"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/workflows"
)

func TestAnExportOrErasureGoesOnUntilItsRowSaysThatItIsOverAndWaitsForAttemptsUnderWay(t *testing.T) {
	t.Parallel()
	env := environment(t)
	id, calls := publicid.NewSubjectRequest(), 0
	began := env.Now()
	env.RegisterActivityWithOptions(func(_ context.Context, p activities.SubjectParams) (activities.SubjectProgress, error) {
		require.Equal(t, id, p.Request)
		calls++
		switch calls {
		case 1:
			return activities.SubjectProgress{Kind: "erase", Status: "running"}, nil
		case 2:
			return activities.SubjectProgress{Kind: "erase", Status: "running", Wait: true}, nil
		}
		return activities.SubjectProgress{Kind: "erase", Status: "completed"}, nil
	}, activity.RegisterOptions{Name: activities.ContinueSubjectName})
	env.ExecuteWorkflow(workflows.SubjectRequest, activities.SubjectParams{Request: id})
	require.NoError(t, env.GetWorkflowError())
	var end activities.SubjectProgress
	require.NoError(t, env.GetWorkflowResult(&end))
	require.Equal(t, activities.SubjectProgress{Kind: "erase", Status: "completed"}, end)
	require.Equal(t, 3, calls)
	require.GreaterOrEqual(t, env.Now().Sub(began).Seconds(), 15.0)
}

// recordSubjectRequest records an export, and an erasure that waits for an attempt.
func recordSubjectRequest(t *testing.T) {
	b := setup(t, apptest.Options{Worker: true})
	answer := make(chan struct{})
	b.tenant.Make(t, http.MethodPatch, "/v1/webhooks/"+b.webhook, map[string]any{"events": []string{"contact.created"}})
	b.receiver.Answer(func(int, testkit.Received) int { <-answer; return http.StatusOK })
	contact := b.tenant.ID(t, "/v1/contacts", map[string]any{"email": "noor@example.com"})
	export := b.tenant.ID(t, "/v1/contacts/"+contact+"/export", nil)
	b.app.Runs(t, "WorkflowId = '"+export+"' AND ExecutionStatus = 'Completed'", 1)
	writeHistory(t, b.app.Temporal, workflows.SubjectRequestName, "export", export)
	b.receiver.Await(t, 1)
	erasure := b.tenant.ID(t, "/v1/contacts/"+contact+"/erase", map[string]any{})
	b.app.Runs(t, "WorkflowId = '"+erasure+"'", 1)
	close(answer)
	writeHistory(t, b.app.Temporal, workflows.SubjectRequestName, "erasure_that_waits", erasure)
}
