package workflows_test

import (
	"context"
	"io"
	"mime/quotedprintable"
	"net/http"
	"net/mail"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"earshot/activities"
	"earshot/internal/change"
	"earshot/internal/config"
	mailer "earshot/internal/mail"
	"earshot/internal/problem"
	"earshot/internal/publicactions"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/workflows"
)

// ballot is a post on a public board, with a visitor who votes for it by e-mail.
type ballot struct {
	*apptest.Tenant
	app  *apptest.App
	post string
	mail string // the directory of the e-mails
	from publicactions.Sender
	ctx  context.Context
}

func newBallot(t *testing.T, app *apptest.App) *ballot {
	t.Helper()
	b := &ballot{Tenant: app.Tenant(t), app: app, mail: app.Config.MailDir}
	// The limit of links for a mailbox holds in all organizations together.
	b.from = publicactions.Sender{Email: "quentin@" + b.Organization.ID.UUID().String() + ".example.com", Name: "Quentin"}
	b.ctx = change.WithCaller(t.Context(), &change.Caller{Organization: b.Organization})
	board := b.ID(t, "/v1/boards", map[string]any{"name": "Ideas", "public": true})
	b.post = b.ID(t, "/v1/boards/"+board+"/posts", map[string]any{"title": "Dark mode"})
	return b
}

// vote submits a vote as the page's form does, and returns the id of the interaction.
func (b *ballot) vote(t *testing.T) string {
	t.Helper()
	err := b.app.PublicActions.Ask(b.ctx, b.from,
		publicactions.Wanted{Kind: publicactions.Vote, Post: publicid.Read[publicid.Post](b.post)},
		publicactions.Mailing{Subject: "Confirm your vote", Text: "Open {link} to confirm.", Page: "https://feedback.example.com/confirm"})
	require.NoError(t, err)
	var id publicid.Interaction
	b.query(t, "SELECT id FROM interactions WHERE organization_id = $1 ORDER BY id DESC LIMIT 1", &id)
	return id.String()
}

// query reads one row. $1 is the organization.
func (b *ballot) query(t *testing.T, sql string, into any) {
	t.Helper()
	require.NoError(t, b.app.Pool.QueryRow(t.Context(), sql, b.Organization.ID.UUID()).Scan(into))
}

func (b *ballot) left(t *testing.T) (n int) {
	t.Helper()
	b.query(t, "SELECT count(*) FROM interactions WHERE organization_id = $1", &n)
	return n
}

func (b *ballot) votes(t *testing.T) int {
	t.Helper()
	return len(b.Do(t, http.MethodGet, "/v1/posts/"+b.post+"/votes", nil).Body["data"].([]any))
}

var tokenInMail = regexp.MustCompile(`token=(\S+)`)

// token waits for the e-mail and returns the token of its link.
func (b *ballot) token(t *testing.T, id string) string {
	t.Helper()
	file := filepath.Join(b.mail, id+".eml")
	require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, testkit.Wait, testkit.Tick)
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	m, err := mail.ReadMessage(f)
	require.NoError(t, err)
	text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	require.NoError(t, err)
	return tokenInMail.FindStringSubmatch(string(text))[1]
}

// waits returns when the run waits for the link to be used.
func (b *ballot) waits(t *testing.T, c client.Client, id string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(historyOf(t, c, id), "EVENT_TYPE_TIMER_STARTED") }, testkit.Wait, testkit.Tick)
}

// confirm does the same as the button on the link's page.
func (b *ballot) confirm(t *testing.T, token string) error {
	t.Helper()
	_, err := b.app.PublicActions.Confirm(b.ctx, token, netip.Prefix{}, false, "en")
	return err
}

// requireOver fails if the link still confirms something.
func (b *ballot) requireOver(t *testing.T, token string) {
	t.Helper()
	err := b.confirm(t, token)
	require.True(t, problem.Is(err, problem.NotFound), err)
}

// ends returns when the run has ended.
func (b *ballot) ends(t *testing.T, id string) {
	t.Helper()
	require.NoError(t, b.app.Temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
}

// historyOf returns all that Temporal stores of a run.
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
	b := newBallot(t, working.Start(t))
	id := b.vote(t)
	token := b.token(t, id)
	require.NoError(t, b.confirm(t, token))
	b.ends(t, id)
	require.Equal(t, 1, b.votes(t))
	kept := historyOf(t, b.app.Temporal, id)
	for _, secret := range []string{"quentin", "Quentin", "example.com", token} {
		require.NotContains(t, kept, secret)
	}
	b.requireOver(t, token)
	require.Equal(t, 1, b.votes(t))
}

func TestButtonsThatArePressedAtOnceCountOnce(t *testing.T) {
	t.Parallel()
	b := newBallot(t, working.Start(t))
	id := b.vote(t)
	token := b.token(t, id)
	answers := make(chan error, 8)
	for range cap(answers) {
		go func() { answers <- b.confirm(t, token) }()
	}
	counted := 0
	for range cap(answers) {
		if err := <-answers; err == nil {
			counted++
		} else {
			require.True(t, problem.Is(err, problem.NotFound), err)
		}
	}
	require.Equal(t, 1, counted)
	require.Equal(t, 1, b.votes(t))
	b.ends(t, id)
}

func TestAProcessThatDiesAfterTheFormWasSentLosesNoLink(t *testing.T) {
	t.Parallel()
	database, temporal := testkit.Database(t), testkit.Namespace(t)
	// The process can't reach Temporal and starts nothing, like one that dies right after the
	// commit.
	away := temporal
	away.HostPort = "127.0.0.1:1"
	dying := newBallot(t, mailing(t, apptest.Options{DatabaseURL: database, Temporal: &away}))
	id := dying.vote(t)
	// The sweep of the next process finds it.
	next := apptest.Start(t, apptest.Options{DatabaseURL: database, Temporal: &temporal, Worker: true, Environ: []string{"EARSHOT_MAIL_DIR=" + dying.mail}})
	token := dying.token(t, id)
	dying.waits(t, next.Temporal, id)
	require.NoError(t, dying.confirm(t, token))
	require.Equal(t, 1, dying.votes(t))
	require.Zero(t, dying.left(t))
	// The run has received no signal, so it learns of the end only when it looks.
	require.NoError(t, next.Temporal.SignalWorkflow(t.Context(), id, "", workflows.ConfirmedSignal, nil))
	require.NoError(t, next.Temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	require.Equal(t, 1, dying.votes(t))
}

func TestASignalWithoutAConfirmationEndsNothing(t *testing.T) {
	t.Parallel()
	b := newBallot(t, working.Start(t))
	id := b.vote(t)
	token := b.token(t, id)
	for range 3 {
		require.NoError(t, b.app.Temporal.SignalWorkflow(t.Context(), id, "", workflows.ConfirmedSignal, nil))
	}
	require.NoError(t, b.confirm(t, token))
	b.ends(t, id)
	require.Equal(t, 1, b.votes(t))
}

func TestARunThatIsDoneAgainMailsNothingAgain(t *testing.T) {
	t.Parallel()
	b := newBallot(t, working.Start(t))
	id := b.vote(t)
	b.token(t, id)
	require.Eventually(t, func() (mailed bool) {
		b.query(t, "SELECT due_at = expires_at FROM interactions WHERE organization_id = $1", &mailed)
		return mailed
	}, testkit.Wait, testkit.Tick)
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

// TestAnUnconfirmedInteractionDisappearsAfterADay skips a day in a test environment, with the real
// activities and database.
func TestAnUnconfirmedInteractionDisappearsAfterADay(t *testing.T) {
	t.Parallel()
	b := newBallot(t, mailing(t, apptest.Options{}))
	id, err := publicid.Parse[publicid.Interaction](b.vote(t))
	require.NoError(t, err)
	env := environment(t)
	env.SetStartTime(time.Now())
	does := activities.NewInteractions(b.app.PublicActions, mailer.New(mailer.Options{Dir: b.mail, Log: testkit.Log(t), SMTP: config.SMTP{}}),
		activities.NewCounts(b.app.Metrics.Meter()))
	env.RegisterActivityWithOptions(does.MailLink, activity.RegisterOptions{Name: activities.MailLinkName})
	env.RegisterActivityWithOptions(does.Look, activity.RegisterOptions{Name: activities.LookAtInteractionName})
	env.RegisterDelayedCallback(func() {
		require.Equal(t, 1, b.left(t), "an hour before the end it still counts")
		var n int
		b.query(t, "WITH o AS (UPDATE interactions SET expires_at = now() WHERE organization_id = $1 RETURNING 1) SELECT count(*) FROM o", &n)
	}, 23*time.Hour)
	began := env.Now()
	env.ExecuteWorkflow(workflows.ConfirmInteraction, activities.InteractionParams{Interaction: id})
	require.NoError(t, env.GetWorkflowError())
	require.InDelta(t, 24, env.Now().Sub(began).Hours(), 0.1)
	require.Zero(t, b.left(t))
	require.Zero(t, b.votes(t))
	b.requireOver(t, b.token(t, id.String()))
}

func TestWithoutAWayForMailsNothingIsKept(t *testing.T) {
	t.Parallel()
	b := newBallot(t, mailing(t, apptest.Options{}))
	id, err := publicid.Parse[publicid.Interaction](b.vote(t))
	require.NoError(t, err)
	does := activities.NewInteractions(b.app.PublicActions, mailer.New(mailer.Options{Log: testkit.Log(t)}), activities.NewCounts(b.app.Metrics.Meter()))
	require.NoError(t, does.MailLink(t.Context(), activities.InteractionParams{Interaction: id}))
	require.Zero(t, b.left(t))
	found, err := does.Look(t.Context(), activities.InteractionParams{Interaction: id})
	require.NoError(t, err)
	require.Nil(t, found.Until)
}
