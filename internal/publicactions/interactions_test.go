package publicactions_test

import (
	"context"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/change"
	"earshot/internal/jobs"
	"earshot/internal/problem"
	"earshot/internal/publicactions"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

type object = map[string]any

// stage is an organization with a post on a public board. The limits of a mailbox hold in all organizations
// together, so its visitor Quentin has an address of its own.
type stage struct {
	*apptest.Tenant
	*publicactions.Service
	quentin publicactions.Sender
	board   publicid.Board
	post    publicid.Post
	ctx     context.Context
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return stageIn(t, apptest.Start(t, apptest.Options{}))
}

// newStageAlone is newStage with a service of its own. It is for tests that use up the limit of a network or
// mailbox, lock tables, wait for locks, end connections, or look at all organizations.
func newStageAlone(t *testing.T) *stage {
	t.Helper()
	return stageIn(t, apptest.Start(t, apptest.Options{Alone: true}))
}

func stageIn(t *testing.T, app *apptest.App) *stage {
	t.Helper()
	n := app.Tenant(t)
	board := n.ID(t, "/v1/boards", object{"name": "Ideas", "public": true})
	post := publicid.Read[publicid.Post](n.ID(t, "/v1/boards/"+board+"/posts", object{"title": "Dark mode"}))
	ctx := change.WithCaller(t.Context(), &change.Caller{Organization: n.Organization})
	quentin := publicactions.Sender{Email: "quentin@" + n.Organization.ID.UUID().String() + ".example.com", Name: "Quentin"}
	return &stage{n, n.App.PublicActions, quentin, publicid.Read[publicid.Board](board), post, ctx}
}

func (s *stage) ask(t *testing.T, email string) (token string) {
	t.Helper()
	require.NoError(t, s.Ask(s.ctx, publicactions.Sender{Email: email, Name: "Quentin"}, publicactions.Wanted{Kind: publicactions.Vote, Post: s.post},
		publicactions.Mailing{Subject: "Confirm", Text: "Open {link} please", Page: "https://feedback.example.com/confirm"}))
	var id publicid.Interaction
	s.query(t, "SELECT id FROM interactions WHERE organization_id = $1 ORDER BY id DESC LIMIT 1", &id)
	return s.token(t, id)
}

var tokenInLink = regexp.MustCompile(`[?&]token=([\w-]+)`)

// token returns the token in the link of a letter. Only the e-mail contains it.
func (s *stage) token(t *testing.T, id publicid.Interaction) string {
	t.Helper()
	letter, err := s.Letter(t.Context(), id)
	require.NoError(t, err)
	require.NotNil(t, letter)
	found := tokenInLink.FindStringSubmatch(letter.Text)
	require.NotEmpty(t, found, letter.Text)
	return found[1]
}

// query reads one row. $1 is the organization.
func (s *stage) query(t *testing.T, sql string, into ...any) {
	t.Helper()
	require.NoError(t, s.App.Pool.QueryRow(t.Context(), sql, s.Organization.ID.UUID()).Scan(into...))
}

func TestAPendingInteractionHasNoAddressAndNoTokenInTheClear(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	token := s.ask(t, s.quentin.Email)
	var row, content string
	s.query(t, "SELECT i::text, encode(content_sealed, 'escape') FROM interactions i WHERE organization_id = $1", &row, &content)
	for _, secret := range []string{"uentin", "example.com", token} {
		require.NotContains(t, row+content, secret)
	}
	var id publicid.Interaction
	s.query(t, "SELECT id FROM interactions WHERE organization_id = $1", &id)
	letter, err := s.Letter(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, s.quentin.Email, letter.To.Address)
	require.Empty(t, letter.To.Name)
	require.Equal(t, "Open https://feedback.example.com/confirm?token="+token+" please", letter.Text)
	again, err := s.Letter(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, letter, again, "the link stays the same")
}

func TestALinkCountsOnceHoweverManyUseItAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	token := s.ask(t, s.quentin.Email)
	var counted, gone atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			switch _, err := s.Confirm(s.ctx, token, theirs, false, "en"); {
			case err == nil:
				counted.Add(1)
			case problem.Is(err, problem.NotFound):
				gone.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, counted.Load())
	require.EqualValues(t, 7, gone.Load())
	var votes, count int
	s.query(t, "SELECT (SELECT count(*) FROM votes WHERE organization_id = $1), (SELECT vote_count FROM posts WHERE organization_id = $1)", &votes, &count)
	require.Equal(t, []int{1, 1}, []int{votes, count})
}

func TestALinkStaysValidAfterAFailedConfirmation(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	token := s.ask(t, s.quentin.Email)
	s.query(t, "UPDATE boards SET public = false WHERE organization_id = $1 RETURNING id", new(publicid.Board))
	_, err := s.Confirm(s.ctx, token, theirs, false, "en")
	require.True(t, problem.Is(err, problem.NotFound), err)
	s.query(t, "UPDATE boards SET public = true WHERE organization_id = $1 RETURNING id", new(publicid.Board))
	_, err = s.Confirm(s.ctx, token, theirs, false, "en")
	require.NoError(t, err)
}

func TestAConfirmationThatIsCutOffBeforeItsCommitHasChangedNothing(t *testing.T) {
	t.Parallel()
	s := newStageAlone(t)
	token := s.ask(t, s.quentin.Email)
	c, err := pgx.Connect(t.Context(), s.App.Config.DatabaseURL)
	require.NoError(t, err)
	defer func() { _ = c.Close(context.Background()) }()
	// The test locks the post, so the confirmation removes its row and then waits. Then Postgres
	// ends the connection, as it does when the process dies.
	tx, err := c.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM posts FOR UPDATE")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { _, err := s.Confirm(s.ctx, token, theirs, false, "en"); done <- err }()
	require.Eventually(t, func() bool {
		var killed bool
		err := s.App.Pool.QueryRow(t.Context(), `SELECT coalesce(bool_or(pg_terminate_backend(pid)), false) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&killed)
		return err == nil && killed
	}, testkit.Wait, 10*time.Millisecond)
	require.Error(t, <-done)
	require.NoError(t, tx.Rollback(t.Context()))
	var left, votes int
	s.query(t, "SELECT (SELECT count(*) FROM interactions WHERE organization_id = $1), (SELECT count(*) FROM votes WHERE organization_id = $1)", &left, &votes)
	require.Equal(t, []int{1, 0}, []int{left, votes})
	_, err = s.Confirm(s.ctx, token, theirs, false, "en")
	require.NoError(t, err)
}

func TestABrowserIsRecognizedOnlyInItsOwnOrganization(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	who := publicactions.Sender{Email: "quentin@example.com", Name: "Quentin"}
	kept := s.Remember(s.Organization.ID, who)
	found := s.Recall(s.Organization.ID, kept, theirs)
	require.Equal(t, publicactions.Sender{Email: who.Email, Name: who.Name, From: theirs}, *found)
	require.NotEqual(t, kept, s.Remember(s.Organization.ID, who))
	require.Nil(t, s.Recall(publicid.NewOrganization(), kept, theirs))
	require.True(t, s.Remembers(kept))
	for _, made := range []string{"", "x", kept[1:], kept + "AAAA", strings.ToLower(kept), "bm9uc2Vuc2U"} {
		require.Nil(t, s.Recall(s.Organization.ID, made, theirs), made)
		require.False(t, s.Remembers(made), made)
	}
}

func TestTheStampOfAFormTellsItsAge(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for age, wanted := range map[time.Duration]publicactions.Pace{
		0: publicactions.TooQuick, -time.Minute: publicactions.TooQuick, 3 * time.Second: publicactions.Usual, 23 * time.Hour: publicactions.Usual,
		25 * time.Hour: publicactions.TooSlow,
	} {
		stamp := s.Stamp("/b/acme/ideas/-/new", time.Now().Add(-age))
		require.Equal(t, wanted, s.PaceOf("/b/acme/ideas/-/new", stamp), age)
		require.Equal(t, publicactions.Unknown, s.PaceOf("/b/acme/other/-/new", stamp), "it counts for its own form only")
		require.Equal(t, publicactions.Unknown, s.PaceOf("/b/acme/ideas/-/new", stamp[1:]))
		require.Equal(t, publicactions.Unknown, s.PaceOf("/b/acme/ideas/-/new", "AAAA"+stamp[4:]))
	}
}

func TestLimitsHoldInAllProcessesTogether(t *testing.T) {
	t.Parallel()
	s := newStageAlone(t)
	another := apptest.Start(t, apptest.Options{DatabaseURL: s.App.Config.DatabaseURL})
	here, there := netip.MustParsePrefix("203.0.113.7/32"), netip.MustParsePrefix("2001:db8::/64")
	var granted atomic.Int32
	var all sync.WaitGroup
	for i := range 80 {
		all.Go(func() {
			service := s.Service
			if i%2 == 0 {
				service = another.PublicActions
			}
			if err := service.MayTry(t.Context(), here); err == nil {
				granted.Add(1)
			}
		})
	}
	all.Wait()
	require.InDelta(t, 60, granted.Load(), 1, "and what flows in meanwhile")
	require.True(t, problem.Is(s.MayTry(t.Context(), here), problem.RateLimited))
	require.NoError(t, s.MayTry(t.Context(), there))
}

func TestTheSweepFindsEveryInteractionThatIsDuePageByPage(t *testing.T) {
	t.Parallel()
	s := newStageAlone(t)
	found := map[string]bool{}
	for _, who := range []string{"ada", "bo", "cy"} {
		s.ask(t, who+"@example.com")
	}
	var last jobs.Overdue
	for {
		due, err := s.App.PublicActions.Sweep().Rows(t.Context(), 0, last, 1)
		require.NoError(t, err)
		if len(due) == 0 {
			break
		}
		last = due[0]
		require.False(t, found[last.Request.ID])
		found[last.Request.ID] = true
	}
	require.Len(t, found, 3)
}
