package workflows_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/workflows"
)

// canary is part of everything that TestNothingPlantedReachesTemporal plants: names, texts,
// addresses, the ends of URLs, and answers of receivers.
const canary = "canary"

// secretsLookLike holds the beginnings of URLs, of webhooks' secrets and of API keys, and the @ of
// e-mail addresses.
var secretsLookLike = []string{"http://", "https://", "whsec_", "esk_", "@"}

// TestNothingPlantedReachesTemporal makes a run of every kind and reads all of them.
func TestNothingPlantedReachesTemporal(t *testing.T) {
	t.Parallel()
	b := setup(t, apptest.Options{Worker: true, Environ: []string{
		byAttempts, "EARSHOT_MAIL_DIR=" + t.TempDir(),
	}})
	require.NoError(t, b.app.Swept(t.Context()))
	plant(t, b)
	all := map[string][]*workflow.WorkflowExecutionInfo{}
	// The sweep and the retention may still run. All other runs have ended.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		clear(all)
		ask := &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1000, Query: b.app.Since("")}
		answer, err := b.app.Temporal.ListWorkflow(t.Context(), ask)
		require.NoError(c, err)
		for _, run := range answer.GetExecutions() {
			all[run.GetType().GetName()] = append(all[run.GetType().GetName()], run)
		}
		for _, name := range []string{
			workflows.DeliverWebhooksName, workflows.FailureStreakName, workflows.MailAdminsName,
			workflows.PublishChangelogName, workflows.RecoverWebhookName, workflows.ReplayDeliveryName,
			workflows.SweepOutboxName,
		} {
			require.NotEmpty(c, all[name], name)
			for _, run := range all[name] {
				require.NotNil(c, run.GetCloseTime(), "%s %s", name, run.GetExecution().GetWorkflowId())
			}
		}
	}, testkit.Wait, testkit.Tick)
	for name, list := range all {
		for _, run := range list {
			text := b.everything(t, run)
			require.Contains(t, text, name, "or this shows nothing")
			for _, secret := range append([]string{canary, testkit.Root()}, secretsLookLike...) {
				require.NotContains(t, strings.ToLower(text), secret, "%s %s", name, run.GetExecution().GetWorkflowId())
			}
		}
	}
}

// plant makes deliveries that succeed, fail and are replayed, a publication and a recovery. It also
// makes a webhook that is disabled, with the e-mail about it.
func plant(t *testing.T, b *bundle) {
	t.Helper()
	tenant := b.app.Tenant(t)
	b.tenant = tenant
	contact := tenant.ID(t, "/v1/contacts", map[string]any{
		"name": "Canary Bird", "email": "canary@example.com", "externalUserId": "canary-1",
		"metadata": map[string]any{"canary": 1},
	})
	board := tenant.ID(t, "/v1/boards", map[string]any{"name": "canary"})
	hook := func(status int, events ...string) string {
		r := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Canary", canary)
			http.Error(w, "canary <canary@example.com> at https://canary.example.com", status)
		}))
		t.Cleanup(r.Close)
		return tenant.ID(t, "/v1/webhooks", map[string]any{"url": r.URL + "/canary?token=canary", "events": events})
	}
	fine := hook(http.StatusOK, "post.created", "changelog.published", "contact.updated")
	dead := hook(http.StatusInternalServerError, "post.created")
	for i := range 10 { // of five attempts each, and 50 disable a webhook
		tenant.ID(t, "/v1/boards/"+board+"/posts", map[string]any{
			"title": fmt.Sprint("canary ", i), "contactId": contact,
			"body": map[string]any{"text": "canary", "json": map[string]any{"canary": 1}},
		})
	}
	tenant.Make(t, http.MethodPatch, "/v1/contacts/"+contact, map[string]any{"email": "other.canary@example.com"})
	tenant.ID(t, "/v1/boards/"+board+"/changelog", map[string]any{
		"title": "canary", "version": "canary", "publishedAt": time.Now().Add(time.Second),
	})
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.Equal(c, false, tenant.Make(t, http.MethodGet, "/v1/webhooks/"+dead, nil)["enabled"])
	}, testkit.Wait, testkit.Tick)
	tenant.ID(t, "/v1/webhooks/"+fine+"/recover", map[string]any{"since": time.Now().Add(-time.Hour)})
	list, _ := tenant.Do(t, http.MethodGet, "/v1/webhooks/"+fine+"/deliveries", nil).Body["data"].([]any)
	require.NotEmpty(t, list)
	sent, _ := list[0].(map[string]any)
	_, _, err := b.replay(t, fmt.Sprint(sent["id"]))
	require.NoError(t, err)
	_, _, err = b.replay(t, publicid.NewDelivery().String())
	require.Error(t, err)
}

// everything returns all that Temporal stores of a run: history, memo, search attributes, failures,
// and the details for operators.
func (b *bundle) everything(t *testing.T, run *workflow.WorkflowExecutionInfo) string {
	t.Helper()
	var text strings.Builder
	id, runID := run.GetExecution().GetWorkflowId(), run.GetExecution().GetRunId()
	described, err := b.app.Temporal.DescribeWorkflowExecution(t.Context(), id, runID)
	require.NoError(t, err)
	plain := protojson.Format(described)
	text.WriteString(plain + decoded(plain))
	for events := b.app.Temporal.GetWorkflowHistory(t.Context(), id, runID, false, 0); events.HasNext(); {
		event, err := events.Next()
		require.NoError(t, err)
		plain := protojson.Format(event)
		text.WriteString(plain + decoded(plain))
	}
	var metadata sdkpb.WorkflowMetadata
	// The worker replays the run for the query. On a busy machine this may take longer than the client waits.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		answer, err := b.app.Temporal.QueryWorkflow(t.Context(), id, runID, "__temporal_workflow_metadata")
		require.NoError(c, err)
		require.NoError(c, answer.Get(&metadata))
	}, testkit.Wait, testkit.Tick)
	text.WriteString(protojson.Format(&metadata))
	return text.String()
}

func TestRecordedHistoriesHoldNoSecrets(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.json.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		f, err := os.Open(file)
		require.NoError(t, err)
		z, err := gzip.NewReader(f)
		require.NoError(t, err)
		plain, err := io.ReadAll(z)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		text := string(plain) + decoded(string(plain))
		require.Contains(t, text, filepath.Base(filepath.Dir(file)), "or this shows nothing")
		for _, secret := range secretsLookLike {
			require.NotContains(t, text, secret, file)
		}
	}
}
