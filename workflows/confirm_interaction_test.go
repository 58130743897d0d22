package workflows_test

import (
	"io"
	"mime/quotedprintable"
	"net/http"
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"earshot/activities"
	"earshot/internal/config"
	mailer "earshot/internal/mail"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/workflows"
)

// ballot is a post on a public board that somebody votes for by e-mail.
type ballot struct {
	*apptest.Tenant
	app                  *apptest.App
	post, home, at, mail string
}

func newBallot(t *testing.T, o apptest.Options) *ballot {
	t.Helper()
	dir := t.TempDir()
	o.Environ = append(o.Environ, "EARSHOT_MAIL_DIR="+dir)
	app := apptest.Start(t, o)
	b := &ballot{Tenant: app.Tenant(t), app: app, mail: dir}
	board := b.ID(t, "/v1/boards", map[string]any{"name": "Ideas", "public": true})
	b.post = b.ID(t, "/v1/boards/"+board+"/posts", map[string]any{"title": "Dark mode"})
	b.home = "/b/" + b.Organization.ID.String()
	b.at = b.home + "/ideas/dark-mode"
	return b
}

// send posts a form, and returns the status of the answer.
func (b *ballot) send(t *testing.T, path string, form url.Values) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.app.URL+path, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}

// vote fills the form, and returns the id of the interaction.
func (b *ballot) vote(t *testing.T) string {
	t.Helper()
	status := b.send(t, b.at+"/-/vote", url.Values{
		"name": {"Quentin"}, "email": {"quentin@example.com"}, "stamp": {b.app.Interactions.Stamp(time.Now().Add(-time.Minute))},
	})
	require.Equal(t, http.StatusSeeOther, status)
	var id publicid.Interaction
	b.query(t, "SELECT id FROM interactions ORDER BY id DESC LIMIT 1", &id)
	return id.String()
}

func (b *ballot) query(t *testing.T, sql string, into any) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), b.app.Config.DatabaseURL)
	require.NoError(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	require.NoError(t, c.QueryRow(t.Context(), sql).Scan(into))
}

func (b *ballot) left(t *testing.T) (n int) {
	t.Helper()
	b.query(t, "SELECT count(*) FROM interactions", &n)
	return n
}

func (b *ballot) votes(t *testing.T) int {
	t.Helper()
	return len(b.Do(t, http.MethodGet, "/v1/posts/"+b.post+"/votes", nil).Body["data"].([]any))
}

var tokenInMail = regexp.MustCompile(`token=(\S+)`)

// token waits for the e-mail.
func (b *ballot) token(t *testing.T, id string) string {
	t.Helper()
	file := filepath.Join(b.mail, id+".eml")
	require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, testkit.Wait, 20*time.Millisecond)
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	m, err := mail.ReadMessage(f)
	require.NoError(t, err)
	text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	require.NoError(t, err)
	return tokenInMail.FindStringSubmatch(string(text))[1]
}

// waits comes back when the run waits for the link to be used.
func (b *ballot) waits(t *testing.T, c client.Client, id string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(historyOf(t, c, id), "EVENT_TYPE_TIMER_STARTED") }, testkit.Wait, 20*time.Millisecond)
}

func (b *ballot) press(t *testing.T, token string) int {
	t.Helper()
	return b.send(t, b.home+"/-/confirm", url.Values{"token": {token}})
}

// ends comes back when the run is over.
func (b *ballot) ends(t *testing.T, id string) {
	t.Helper()
	require.NoError(t, b.app.Temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
}

// historyOf is all that Temporal keeps of a run.
func historyOf(t *testing.T, c client.Client, id string) string {
	t.Helper()
	var all strings.Builder
	for events := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		require.NoError(t, err)
		all.WriteString(e.String())
	}
	return all.String()
}

func TestARunWaitsForTheLinkToBeUsedAndKnowsNothingOfThePerson(t *testing.T) {
	t.Parallel()
	b := newBallot(t, apptest.Options{Worker: true})
	id := b.vote(t)
	token := b.token(t, id)
	require.Equal(t, http.StatusSeeOther, b.press(t, token))
	b.ends(t, id)
	require.Equal(t, 1, b.votes(t))
	kept := historyOf(t, b.app.Temporal, id)
	for _, secret := range []string{"quentin", "Quentin", "example.com", token} {
		require.NotContains(t, kept, secret)
	}
	require.Equal(t, http.StatusGone, b.press(t, token))
	require.Equal(t, 1, b.votes(t))
}

func TestButtonsThatArePressedAtOnceCountOnce(t *testing.T) {
	t.Parallel()
	b := newBallot(t, apptest.Options{Worker: true})
	id := b.vote(t)
	token := b.token(t, id)
	states := make(chan int, 8)
	for range cap(states) {
		go func() { states <- b.press(t, token) }()
	}
	counted := 0
	for range cap(states) {
		if state := <-states; state == http.StatusSeeOther {
			counted++
		} else {
			require.Equal(t, http.StatusGone, state)
		}
	}
	require.Equal(t, 1, counted)
	require.Equal(t, 1, b.votes(t))
	b.ends(t, id)
}

func TestAProcessThatDiesAfterTheFormWasSentLosesNoLink(t *testing.T) {
	t.Parallel()
	database, temporal := testkit.Database(t), testkit.Namespace(t)
	// It can't reach Temporal, so it starts nothing, as one that dies right after the commit.
	away := temporal
	away.HostPort = "127.0.0.1:1"
	dying := newBallot(t, apptest.Options{DatabaseURL: database, Temporal: &away})
	id := dying.vote(t)
	// The sweep of the next process finds it.
	next := apptest.Start(t, apptest.Options{DatabaseURL: database, Temporal: &temporal, Worker: true, Environ: []string{"EARSHOT_MAIL_DIR=" + dying.mail}})
	token := dying.token(t, id)
	dying.waits(t, next.Temporal, id)
	require.Equal(t, http.StatusSeeOther, dying.press(t, token))
	require.Equal(t, 1, dying.votes(t))
	require.Zero(t, dying.left(t))
	// Nobody told the run: it finds out when it looks.
	require.NoError(t, next.Temporal.SignalWorkflow(t.Context(), id, "", workflows.ConfirmedSignal, nil))
	require.NoError(t, next.Temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	require.Equal(t, 1, dying.votes(t))
}

func TestASignalWithoutAConfirmationEndsNothing(t *testing.T) {
	t.Parallel()
	b := newBallot(t, apptest.Options{Worker: true})
	id := b.vote(t)
	token := b.token(t, id)
	for range 3 {
		require.NoError(t, b.app.Temporal.SignalWorkflow(t.Context(), id, "", workflows.ConfirmedSignal, nil))
	}
	require.Equal(t, http.StatusSeeOther, b.press(t, token))
	b.ends(t, id)
	require.Equal(t, 1, b.votes(t))
}

func TestARunThatIsDoneAgainMailsNothingAgain(t *testing.T) {
	t.Parallel()
	b := newBallot(t, apptest.Options{Worker: true})
	id := b.vote(t)
	b.token(t, id)
	require.Eventually(t, func() (mailed bool) {
		b.query(t, "SELECT due_at = expires_at FROM interactions", &mailed)
		return mailed
	}, testkit.Wait, 20*time.Millisecond)
	require.NoError(t, os.Remove(filepath.Join(b.mail, id+".eml")))
	require.NoError(t, b.app.Temporal.TerminateWorkflow(t.Context(), id, "", "by an operator"))
	found, err := publicid.Parse[publicid.Interaction](id)
	require.NoError(t, err)
	run, err := b.app.Temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: workflows.MainQueue},
		workflows.ConfirmInteractionName, activities.InteractionParams{Interaction: found})
	require.NoError(t, err)
	b.waits(t, b.app.Temporal, id)
	require.NoFileExists(t, filepath.Join(b.mail, id+".eml"))
	require.NoError(t, b.app.Temporal.CancelWorkflow(t.Context(), run.GetID(), ""))
	require.Error(t, run.Get(t.Context(), nil))
}

// TestWhatNobodyConfirmsGoesWithoutATrace has a day pass in a test environment, with the real
// activities and database.
func TestWhatNobodyConfirmsGoesWithoutATrace(t *testing.T) {
	t.Parallel()
	b := newBallot(t, apptest.Options{})
	id, err := publicid.Parse[publicid.Interaction](b.vote(t))
	require.NoError(t, err)
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(testkit.Log(t)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(time.Now())
	env.SetTestTimeout(testkit.Wait)
	does := activities.NewInteractions(b.app.Interactions, mailer.New(mailer.Options{Dir: b.mail, Log: testkit.Log(t), SMTP: config.SMTP{}}),
		activities.NewCounts(b.app.Metrics.Meter()))
	env.RegisterActivityWithOptions(does.MailLink, activity.RegisterOptions{Name: workflows.MailLinkActivity})
	env.RegisterActivityWithOptions(does.Look, activity.RegisterOptions{Name: workflows.LookAtInteractionActivity})
	env.RegisterDelayedCallback(func() {
		require.Equal(t, 1, b.left(t), "an hour before the end it still counts")
		var n int
		b.query(t, "WITH o AS (UPDATE interactions SET expires_at = now() RETURNING 1) SELECT count(*) FROM o", &n)
	}, 23*time.Hour)
	began := env.Now()
	env.ExecuteWorkflow(workflows.ConfirmInteraction, activities.InteractionParams{Interaction: id})
	require.NoError(t, env.GetWorkflowError())
	require.InDelta(t, 24, env.Now().Sub(began).Hours(), 0.1)
	require.Zero(t, b.left(t))
	require.Zero(t, b.votes(t))
	require.Equal(t, http.StatusGone, b.press(t, b.token(t, id.String())))
}

func TestWithoutAWayForMailsNothingIsKept(t *testing.T) {
	t.Parallel()
	b := newBallot(t, apptest.Options{})
	id, err := publicid.Parse[publicid.Interaction](b.vote(t))
	require.NoError(t, err)
	does := activities.NewInteractions(b.app.Interactions, mailer.New(mailer.Options{Log: testkit.Log(t)}), activities.NewCounts(b.app.Metrics.Meter()))
	require.NoError(t, does.MailLink(t.Context(), activities.InteractionParams{Interaction: id}))
	require.Zero(t, b.left(t))
	found, err := does.Look(t.Context(), activities.InteractionParams{Interaction: id})
	require.NoError(t, err)
	require.Nil(t, found.Until)
}
