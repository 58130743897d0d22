package worker_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
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
	// does are the functions of the workflows by name.
	does map[string]any
}

func (n *names) RegisterWorkflowWithOptions(does any, o workflow.RegisterOptions) {
	n.all, n.does[o.Name] = append(n.all, "workflow "+o.Name), does
}

func (n *names) RegisterActivityWithOptions(_ any, o activity.RegisterOptions) {
	n.all = append(n.all, n.kind+" "+o.Name)
}

// Histories and workers of other releases contain these names.
func TestTheNamesOfWorkflowsAndActivitiesStayTheSame(t *testing.T) {
	t.Parallel()
	n := &names{does: map[string]any{}}
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
	}, n.all, "A new job adds its names here. No name is ever changed or removed.")
}

// A member that the workflow does not read is lost without an error.
func TestEachWorkflowReadsAllMembersOfTheArgumentsThatAreSentToIt(t *testing.T) {
	t.Parallel()
	n := &names{does: map[string]any{}}
	worker.Register(n)
	text, err := os.ReadFile(filepath.Join("..", "dispatch", "testdata", "wire.json"))
	require.NoError(t, err)
	var calls []map[string]struct {
		WorkflowType struct{ Name string }
		Input        struct{ Payloads []struct{ Data string } }
	}
	require.NoError(t, json.Unmarshal(text, &calls))
	checked := 0
	for _, call := range calls {
		for kind, c := range call {
			does, ok := n.does[c.WorkflowType.Name]
			if !ok {
				require.Empty(t, c.WorkflowType.Name, kind) // a signal alone
				continue
			}
			read := map[string]bool{}
			for field := range reflect.TypeOf(does).In(1).Fields() {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				read[name] = true
			}
			var sent map[string]any
			require.NoError(t, json.Unmarshal([]byte(c.Input.Payloads[0].Data), &sent))
			for member := range sent {
				require.True(t, read[member], "%s does not read %q", c.WorkflowType.Name, member)
			}
			checked++
		}
	}
	require.Greater(t, checked, 6)
}

func TestTheOperatingGuideHasEachWorkflow(t *testing.T) {
	t.Parallel()
	n := &names{does: map[string]any{}}
	worker.Register(n)
	guide, err := os.ReadFile(filepath.Join("..", "docs", "operating.md"))
	require.NoError(t, err)
	for name := range n.does {
		require.Regexp(t, "(?m)^\\| .*`"+name+"`.* \\|", string(guide))
	}
}
