package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"

	"earshot/internal/testkit/tier"
)

// canaries are unique words, by the kind of value in which they are planted.
type canaries map[string][]string

// plant makes and remembers a word. It has only lower-case letters and digits, so slugs and search
// documents keep it.
func (c canaries) plant(as string) string {
	random := make([]byte, 8)
	_, _ = rand.Read(random) // doesn't fail
	word := "canary" + hex.EncodeToString(random)
	c.remember(as, word)
	return word
}

func (c canaries) remember(as, word string) { c[as] = append(c[as], word) }

// in returns the kinds whose words occur in a text, in any encoding.
func (c canaries) in(text string) (kinds []string) {
	lower := strings.ToLower(text)
	for kind, words := range c {
		for _, word := range words {
			if strings.Contains(lower, strings.ToLower(word)) || containsAny(text, encodings(word)) {
				kinds = append(kinds, kind)
				break
			}
		}
	}
	return kinds
}

func containsAny(text string, words []string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// encodings returns the forms of a word in hex, and in base64 at any offset.
func encodings(word string) []string {
	forms := []string{hex.EncodeToString([]byte(word))}
	for before := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + word))
		// Leave out the characters that share bits with the neighbours.
		forms = append(forms, encoded[(before*8+5)/6:(before+len(word))*8/6])
	}
	return forms
}

// mayHold lists the columns that may hold planted words, with the reasons. A planted word in any
// other column is a leak.
var mayHold = map[string]struct {
	kinds  string
	reason string
}{
	"users.email":                 {"member's address", "whom to mail"},
	"users.name":                  {"member's name", "as whom to greet"},
	"organizations.name":          {"organization's name", "what the caller called it"},
	"api_keys.name":               {"key's name", "what the caller called it"},
	"contacts.email":              {"contact's address", "a trait that the caller tracks"},
	"contacts.name":               {"contact's name", "a trait"},
	"contacts.metadata":           {"metadata's key, metadata's value", "traits"},
	"posts.title":                 {"post's title", "feedback"},
	"posts.slug":                  {"post's title", "made of the title"},
	"posts.body_text":             {"post's text", "feedback"},
	"post_documents.title":        {"post's title", "what a search goes by"},
	"post_documents.words":        {"post's title, post's text", "what a search goes by"},
	"comments.body_text":          {"comment's text", "feedback"},
	"changelog_entries.title":     {"entry's title", "it is published"},
	"changelog_entries.slug":      {"entry's title", "made of the title"},
	"changelog_entries.body_text": {"entry's text", "it is published"},
	"attempts.response_body":      {"receiver's answer", "the log of deliveries shows it to its owner"},
	"events.payload": {
		"contact's address, contact's name, metadata's key, metadata's value, post's title, comment's text, entry's title",
		"what is sent, byte for byte",
	},
}

// inMails are the kinds that an e-mail may hold: its sender, its recipient and the organization.
var inMails = []string{"sender's address", "member's address", "member's name", "organization's name"}

// TestNothingPlantedIsFoundWhereItDoesNotBelong runs the program with full logs, plays each kind of
// secret and of failure, and searches all output.
func TestNothingPlantedIsFoundWhereItDoesNotBelong(t *testing.T) {
	tier.Slow(t, "plays every chapter and searches everything that was written")
	t.Parallel()
	s := newStory(t)
	s.tell()
	for place, text := range s.left() {
		require.Contains(t, text, s.known[place], "%s: or this shows nothing", place)
		require.Empty(t, s.planted.in(text), "in %s", place)
	}
	s.searchHistories()
	s.searchDatabase()
	require.NotEmpty(t, s.mails.all())
	for _, text := range s.mails.all() {
		require.Subset(t, inMails, s.planted.in(text), "in an e-mail")
	}
}

// left returns the texts that the processes left, by place. known has a string that each text must
// contain, which proves that the test searches the right text.
func (s *story) left() map[string]string {
	s.known = map[string]string{
		"log of the API": `"msg":"request"`, "log of the worker": `"msg":"attempt"`,
		"metrics of the API": "go_goroutines", "metrics of the worker": "earshot_attempts_total",
		"error answers": "ERR_INTERNAL", "output of commands": "sealed anew", "spans": `"attempt"`,
	}
	texts := map[string]string{
		"metrics of the API": s.metrics(s.apiMetrics), "metrics of the worker": s.metrics(s.workerMetrics),
		"error answers": s.refusals.String(), "output of commands": s.said,
	}
	// Stop the processes first, because the last log lines are about stopping.
	s.api.signal(interrupt)
	s.working.signal(interrupt)
	texts["spans"] = s.traces.all()
	for _, name := range []string{`"createWebhook"`, `"commit"`, `"start"`, `"RunWorkflow:deliver_webhooks"`, `"RunActivity:mail_admin"`, `"links"`} {
		require.Contains(s.t, texts["spans"], name)
	}
	texts["log of the API"], texts["log of the worker"] = s.api.log.String(), s.working.log.String()
	require.Contains(s.t, texts["log of the API"], `"level":"DEBUG"`)
	require.Contains(s.t, texts["log of the worker"], `"level":"DEBUG"`)
	return texts
}

func (s *story) metrics(address string) string {
	s.t.Helper()
	answer, err := httpClient.Get("http://" + address + "/metrics")
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	return string(text)
}

// searchHistories searches every run of the namespace: its description with memo and search
// attributes, and each event with payloads and failures.
func (s *story) searchHistories() {
	s.t.Helper()
	c, err := client.Dial(s.namespace)
	require.NoError(s.t, err)
	defer c.Close()
	answer, err := c.ListWorkflow(s.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1000})
	require.NoError(s.t, err)
	require.Empty(s.t, answer.GetNextPageToken())
	types := map[string]bool{}
	for _, run := range answer.GetExecutions() {
		types[run.GetType().GetName()] = true
		id, runID := run.GetExecution().GetWorkflowId(), run.GetExecution().GetRunId()
		described, err := c.DescribeWorkflowExecution(s.t.Context(), id, runID)
		require.NoError(s.t, err)
		text := protojson.Format(described)
		for events := c.GetWorkflowHistory(s.t.Context(), id, runID, false, 0); events.HasNext(); {
			event, err := events.Next()
			require.NoError(s.t, err)
			text += protojson.Format(event)
		}
		require.Contains(s.t, text, run.GetType().GetName())
		require.Empty(s.t, s.planted.in(text), "in the history of %s, a run of %s", id, run.GetType().GetName())
	}
	for _, name := range []string{
		"deliver_webhooks", "failure_streak", "mail_admins", "publish_changelog", "recover_webhook", "replay_delivery", "subject_request",
		"sweep_outbox",
	} {
		require.True(s.t, types[name], "no run of %s", name)
	}
}

// searchDatabase searches the dump of every column.
func (s *story) searchDatabase() {
	s.t.Helper()
	for column, text := range s.dump() {
		allowed := mayHold[column].kinds
		found := s.planted.in(text)
		for _, kind := range found {
			require.Contains(s.t, strings.Split(allowed, ", "), kind, "in %s", column)
		}
		for _, kind := range strings.Split(allowed, ", ") {
			if kind != "" {
				require.Contains(s.t, found, kind, "%s is allowed to hold it, and doesn't: or this shows nothing", column)
			}
		}
	}
}

// dump returns the text of every column, in the COPY format of pg_dump.
func (s *story) dump() map[string]string {
	s.t.Helper()
	c, err := pgx.Connect(s.t.Context(), s.database)
	require.NoError(s.t, err)
	defer func() { _ = c.Close(context.Background()) }()
	rows, err := c.Query(s.t.Context(), `SELECT table_schema, table_name, column_name FROM information_schema.columns
		JOIN information_schema.tables USING (table_schema, table_name)
		WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`)
	require.NoError(s.t, err)
	type column struct{ Schema, Table, Column string }
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	require.NoError(s.t, err)
	require.Greater(s.t, len(columns), 100)
	all := map[string]string{}
	for _, at := range columns {
		var text bytes.Buffer
		_, err := c.PgConn().CopyTo(s.t.Context(), &text, fmt.Sprintf("COPY (SELECT %s FROM %s) TO STDOUT",
			pgx.Identifier{at.Column}.Sanitize(), pgx.Identifier{at.Schema, at.Table}.Sanitize()))
		require.NoError(s.t, err)
		all[at.Table+"."+at.Column] = text.String()
	}
	return all
}
