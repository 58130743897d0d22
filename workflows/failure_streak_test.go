package workflows_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
	"earshot/workflows"
)

// failing is a bundle whose webhook answers 500 until the test sets ok.
type failing struct {
	*bundle
	ok atomic.Bool
}

// fast starts a service for one test whose attempts have no delay.
func fast(t *testing.T, environ ...string) *apptest.App {
	t.Helper()
	return apptest.Start(t, apptest.Options{Worker: true, Environ: append([]string{
		"EARSHOT_WEBHOOK_RETRY_DELAYS=0s,0s,0s,0s", "EARSHOT_MAIL_DIR=" + filepath.Join(t.TempDir(), "mail"),
	}, environ...)})
}

func newFailing(t *testing.T, app *apptest.App) *failing {
	t.Helper()
	f := &failing{bundle: newBundle(t, app)}
	f.receiver.Answer(func(int, testkit.Received) int {
		if f.ok.Load() {
			return http.StatusOK
		}
		return http.StatusInternalServerError
	})
	return f
}

// byAttempts counts each failed attempt. Ten deliveries then make the fifty failures that disable a webhook.
const byAttempts = "EARSHOT_WEBHOOK_DISABLE_COUNTS=attempts"

// fails disables the webhook by fifty failed attempts.
func (f *failing) fails(t *testing.T) {
	t.Helper()
	f.posts(t, 10)
	f.isDisabled(t)
}

// posts makes n events at the same time.
func (f *failing) posts(t *testing.T, n int) {
	t.Helper()
	var all sync.WaitGroup
	for range n {
		all.Go(func() { f.post(t) })
	}
	all.Wait()
}

func (f *failing) hook(t *testing.T) map[string]any {
	t.Helper()
	return f.tenant.Make(t, http.MethodGet, "/v1/webhooks/"+f.webhook, nil)
}

// counts waits until the webhook's streak has n failures.
func (f *failing) counts(t *testing.T, n int) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.Equal(c, json.Number(fmt.Sprint(n)), f.hook(t)["consecutiveFailures"])
	}, testkit.Wait, testkit.Tick)
}

func (f *failing) isDisabled(t *testing.T) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		hook := f.hook(t)
		require.Equal(c, false, hook["enabled"])
		require.Equal(c, "failures", hook["disabledReason"])
		require.NotNil(c, hook["disabledAt"])
	}, testkit.Wait, testkit.Tick)
}

// streakEnds waits until the run that follows the streak has ended. It may not have begun yet, because
// the signal that starts it is sent after the count.
func (f *failing) streakEnds(t *testing.T) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.NoError(c, f.app.Temporal.GetWorkflow(t.Context(), f.webhook, "").Get(t.Context(), nil))
	}, testkit.Wait, testkit.Tick)
}

// mailsEnd waits for n runs that notify admins, and returns the e-mails about the webhook. The runs are those
// of all webhooks, so the service comes from fast.
func (f *failing) mailsEnd(t *testing.T, n int) []string {
	t.Helper()
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Completed'", workflows.MailAdminsName)
	f.app.Runs(t, query, n)
	return f.mails(t)
}

// mails returns the e-mails that name the webhook.
func (f *failing) mails(t *testing.T) []string {
	t.Helper()
	return mailsWith(t, f.app, f.webhook)
}

func TestFiftyFailuresInARowDisableTheWebhookAndTellTheAdminOnce(t *testing.T) {
	t.Parallel()
	f := newFailing(t, fast(t))
	f.posts(t, 60)
	f.isDisabled(t)
	mails := f.mailsEnd(t, 1)
	require.Len(t, mails, 1)
	require.Contains(t, mails[0], "owner@example.com")
	require.NotContains(t, mails[0], "/hook", "a URL may hold a token")
	f.streakEnds(t)
	// Deliveries after the fiftieth failed like the others, or found the webhook disabled.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		list, _ := f.tenant.Do(t, http.MethodGet, "/v1/webhooks/"+f.webhook+"/deliveries?limit=200&status=failed", nil).Body["data"].([]any)
		require.Len(c, list, 60)
	}, testkit.Wait, testkit.Tick)
	mailing := f.app.Runs(t, fmt.Sprintf("WorkflowType = '%s'", workflows.MailAdminsName), 1)[0].GetExecution().GetWorkflowId()
	if *record != "" {
		writeHistory(t, f.app.Temporal, workflows.FailureStreakName, "disables_the_webhook", f.webhook)
		writeHistory(t, f.app.Temporal, workflows.MailAdminsName, "told", mailing)
	}
}

func TestFortyNineFailuresLeaveTheWebhookEnabled(t *testing.T) {
	t.Parallel()
	f := newFailing(t, fast(t))
	f.posts(t, 49)
	f.counts(t, 49)
	require.Equal(t, true, f.hook(t)["enabled"])
	open := fmt.Sprintf("WorkflowId = '%s' AND ExecutionStatus = 'Running'", f.webhook)
	f.app.Runs(t, open, 1)
	// This is the fiftieth failure.
	f.post(t)
	f.isDisabled(t)
	require.Len(t, f.mailsEnd(t, 1), 1)
}

func TestASuccessEndsTheStreakAndItsRun(t *testing.T) {
	t.Parallel()
	f := newFailing(t, working.Start(t))
	f.posts(t, 3)
	f.counts(t, 3)
	f.ok.Store(true)
	f.post(t)
	f.streakEnds(t)
	f.counts(t, 0)
	require.Empty(t, f.mails(t))
	if *record != "" {
		writeHistory(t, f.app.Temporal, workflows.FailureStreakName, "ended_by_a_success", f.webhook)
	}
	// The next failure starts a new streak.
	f.ok.Store(false)
	f.post(t)
	f.counts(t, 1)
	f.app.Runs(t, fmt.Sprintf("WorkflowId = '%s' AND ExecutionStatus = 'Running'", f.webhook), 1)
}

func TestAHealthyWebhookHasNoStreakToFollow(t *testing.T) {
	t.Parallel()
	f := newFailing(t, fast(t))
	f.ok.Store(true)
	f.posts(t, 5)
	for _, got := range f.receiver.Await(t, 5) {
		// Every run, of a single delivery or of a group, has ended and is listed.
		f.app.Runs(t, fmt.Sprintf("DeliveryID = '%s' AND ExecutionStatus = 'Completed'", got.DeliveryID()), 1)
	}
	f.app.Runs(t, fmt.Sprintf("WorkflowType = '%s'", workflows.FailureStreakName), 0)
}

func TestEnablingDisablingOrDeletingTheWebhookEndsTheStreak(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, f *failing){
		"disabled": func(t *testing.T, f *failing) {
			f.tenant.Make(t, http.MethodPatch, "/v1/webhooks/"+f.webhook, map[string]any{"enabled": false})
		},
		"disabled and enabled": func(t *testing.T, f *failing) {
			f.tenant.Make(t, http.MethodPatch, "/v1/webhooks/"+f.webhook, map[string]any{"enabled": false})
			f.tenant.Make(t, http.MethodPatch, "/v1/webhooks/"+f.webhook, map[string]any{"enabled": true})
			require.Equal(t, json.Number("0"), f.hook(t)["consecutiveFailures"])
		},
		"deleted": func(t *testing.T, f *failing) {
			f.tenant.Make(t, http.MethodDelete, "/v1/webhooks/"+f.webhook, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFailing(t, working.Start(t))
			f.posts(t, 2)
			f.counts(t, 2)
			end(t, f)
			f.streakEnds(t)
			require.Empty(t, f.mails(t))
		})
	}
}

func TestAWebhookThatIsEnabledAnewIsDisabledAndToldOfAnew(t *testing.T) {
	tier.Slow(t, "makes a hundred failures")
	t.Parallel()
	f := newFailing(t, fast(t))
	for n := 1; n <= 2; n++ {
		f.posts(t, 50)
		f.isDisabled(t)
		require.Len(t, f.mailsEnd(t, n), n)
		f.tenant.Make(t, http.MethodPatch, "/v1/webhooks/"+f.webhook, map[string]any{"enabled": true})
	}
}

// TestEnablingThatRacesTheFiftiethFailureIsDecidedByTheRow runs both in either order. An enabled
// webhook never has fifty failures, and one e-mail is sent for each time that the webhook was
// disabled.
func TestEnablingThatRacesTheFiftiethFailureIsDecidedByTheRow(t *testing.T) {
	t.Parallel()
	f := newFailing(t, fast(t))
	f.posts(t, 49)
	f.counts(t, 49)
	var both sync.WaitGroup
	both.Go(func() { f.post(t) })
	both.Go(func() {
		for _, enabled := range []bool{false, true} {
			f.tenant.Make(t, http.MethodPatch, "/v1/webhooks/"+f.webhook, map[string]any{"enabled": enabled})
		}
	})
	both.Wait()
	f.ok.Store(true)
	// Another delivery ends the streak, or finds the webhook disabled.
	f.tenant.Make(t, http.MethodPatch, "/v1/webhooks/"+f.webhook, map[string]any{"enabled": true})
	f.post(t)
	f.counts(t, 0)
	f.streakEnds(t)
	disabled := count(t, f.app.Temporal, f.webhook, enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED)
	require.Len(t, f.mailsEnd(t, disabled), disabled)
}

// TestASuccessAmongFailuresIsNeverLost runs failures and successes at the same time. More than fifty attempts
// fail, but the webhook stays enabled, because there are never fifty failures in a row.
func TestASuccessAmongFailuresIsNeverLost(t *testing.T) {
	t.Parallel()
	f := newFailing(t, fast(t, byAttempts))
	var n atomic.Int32
	f.receiver.Answer(func(int, testkit.Received) int {
		// Every tenth request succeeds.
		if n.Add(1)%10 == 0 {
			return http.StatusOK
		}
		return http.StatusInternalServerError
	})
	f.posts(t, 20)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		list, _ := f.tenant.Do(t, http.MethodGet, "/v1/webhooks/"+f.webhook+"/deliveries?limit=200&status=pending", nil).Body["data"].([]any)
		require.Empty(c, list)
	}, testkit.Wait, testkit.Tick)
	require.Greater(t, n.Load()*9/10, int32(50), "or this shows nothing")
	require.Equal(t, true, f.hook(t)["enabled"])
	require.Empty(t, f.mails(t))
}

func TestFailedAttemptsCountWhereTheDeploymentWantsIt(t *testing.T) {
	t.Parallel()
	f := newFailing(t, fast(t, byAttempts, "EARSHOT_WEBHOOK_RETRY_DELAYS=0s,1h,1h,1h"))
	f.posts(t, 25)
	f.isDisabled(t)
	require.Equal(t, json.Number("50"), f.hook(t)["consecutiveFailures"])
}

// TestTheAdminIsToldWhenTheMailSystemIsBack starts with a file in the mailbox's place.
func TestTheAdminIsToldWhenTheMailSystemIsBack(t *testing.T) {
	t.Parallel()
	f := newFailing(t, fast(t, byAttempts))
	require.NoError(t, os.WriteFile(f.app.Config.MailDir, nil, 0o600))
	f.fails(t)
	f.streakEnds(t)
	f.app.Runs(t, fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", workflows.MailAdminsName), 1)
	require.NoError(t, os.Remove(f.app.Config.MailDir))
	require.Len(t, f.mailsEnd(t, 1), 1)
}

func TestNothingWaitsForMailWhereNoneIsConfigured(t *testing.T) {
	t.Parallel()
	f := newFailing(t, fast(t, byAttempts, "EARSHOT_MAIL_DIR="))
	f.fails(t)
	require.Empty(t, f.mailsEnd(t, 1))
}

func TestAResetStreakRunEndsAgainAndSendsNoSecondEMail(t *testing.T) {
	t.Parallel()
	f := newFailing(t, fast(t, byAttempts))
	f.fails(t)
	require.Len(t, f.mailsEnd(t, 1), 1)
	for name, point := range resetPoints {
		f.streakEnds(t)
		f.reset(t, f.webhook, point)
		require.NoError(t, f.over(t, f.webhook), name)
	}
	require.Len(t, f.mailsEnd(t, 1), 1)
}
