package worker_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
	"earshot/worker"
)

// names records the registered names.
type names struct {
	sdk.WorkflowRegistry
	sdk.ActivityRegistry
	kind string
	all  []string
}

func (n *names) RegisterWorkflowWithOptions(_ any, o workflow.RegisterOptions) {
	n.all = append(n.all, "workflow "+o.Name)
}

func (n *names) RegisterActivityWithOptions(_ any, o activity.RegisterOptions) {
	n.all = append(n.all, n.kind+" "+o.Name)
}

// Histories and workers of other releases contain these names.
func TestTheNamesOfWorkflowsAndActivitiesStayTheSame(t *testing.T) {
	t.Parallel()
	n := &names{}
	worker.Register(n)
	n.kind = "main"
	activities.All{}.Register(n)
	n.kind = "later"
	activities.All{}.RegisterLater(n)
	slices.Sort(n.all)
	require.Equal(t, []string{
		"later attempt_later",
		"main attempt_first",
		"main cancel_backfill",
		"main cancel_recovery",
		"main continue_backfill",
		"main continue_subject_request",
		"main count_failed",
		"main disable_webhook",
		"main end_terminated",
		"main give_up_deliveries",
		"main insert_replay",
		"main look_at_interaction",
		"main look_at_streak",
		"main mail_admin",
		"main mail_link",
		"main mail_subscribers",
		"main publish_entry",
		"main remove_expired_rows",
		"main replay_failed",
		"main revive_deliveries",
		"main sweep_outbox_rows",
		"workflow backfill_contacts",
		"workflow confirm_interaction",
		"workflow deliver_webhooks",
		"workflow failure_streak",
		"workflow mail_admins",
		"workflow notify_subscribers",
		"workflow publish_changelog",
		"workflow recover_webhook",
		"workflow remove_expired",
		"workflow replay_delivery",
		"workflow subject_request",
		"workflow sweep_outbox",
	}, n.all)
}
