package api_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/api"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

// short starts the service with one limit so short that a test reaches it. The others stay. Tests that wait until
// a request waits for a lock need a database of their own.
func short(t *testing.T, o apptest.Options, change func(*api.Limits)) *apptest.App {
	t.Helper()
	l := api.StandardLimits()
	change(&l)
	return apptest.Start(t, o).Behind(t, l)
}

const (
	brief  = 200 * time.Millisecond
	health = "GET /healthz HTTP/1.1\r\nHost: a.example\r\n\r\n"
)

func TestAClientThatDripsItsHeadersIsCutOff(t *testing.T) {
	t.Parallel()
	app := short(t, apptest.Options{}, func(l *api.Limits) { l.Header = brief })
	for _, begun := range []string{"", "G", "GET /healthz HTTP/1.1\r\n", strings.TrimSuffix(health, "\r\n")} {
		s := dial(t, app)
		s.send(t, begun)
		s.drip(t)
		statuses, _ := s.answers(t)
		require.Subset(t, []int{http.StatusBadRequest}, statuses, "%q", begun)
	}
}

func TestAClientThatDripsItsBodyIsCutOffAndChangesNothing(t *testing.T) {
	t.Parallel()
	app := short(t, apptest.Options{}, func(l *api.Limits) { l.Body = brief })
	n := app.Tenant(t)
	unchanged := n.Watch(t)
	s := dial(t, app)
	s.send(t, "POST /v1/boards HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer "+n.Key+
		"\r\nContent-Length: 100\r\n\r\n{\"name\":")
	s.drip(t)
	statuses, text := s.answers(t)
	require.Equal(t, []int{http.StatusUnprocessableEntity}, statuses, text)
	unchanged(t)
}

func TestTheServerReadsTheBodyOfARejectedRequestOnlyBriefly(t *testing.T) {
	t.Parallel()
	app := short(t, apptest.Options{}, func(l *api.Limits) { l.Body = brief })
	s := dial(t, app)
	s.send(t, "POST /v1/boards HTTP/1.1\r\nHost: a.example\r\nContent-Length: 100000\r\n\r\n{")
	statuses, text := s.answers(t)
	require.Equal(t, []int{http.StatusUnauthorized}, statuses, text)
}

func TestAConnectionThatIsIdleIsClosed(t *testing.T) {
	t.Parallel()
	app := short(t, apptest.Options{}, func(l *api.Limits) { l.Idle = brief })
	s := dial(t, app)
	s.send(t, health)
	require.Equal(t, http.StatusOK, s.answer(t))
	s.requireClosed(t)
}

// The contract has some hundred KB, so a few copies exceed the buffers of sockets.
func TestAClientThatDoesNotReadItsAnswersIsCutOff(t *testing.T) {
	t.Parallel()
	app := short(t, apptest.Options{}, func(l *api.Limits) { l.Answer = brief })
	s := dial(t, app)
	var err error
	for err == nil {
		_, err = io.WriteString(s, strings.Repeat("GET /v1/openapi.json HTTP/1.1\r\nHost: a.example\r\n\r\n", 100))
	}
	require.NotErrorIs(t, err, errDeadline)
	require.Equal(t, http.StatusOK, app.Tenant(t).Do(t, http.MethodGet, "/v1/me", nil).Status)
}

func TestHeadersOfMoreThan64KiBAreRefused(t *testing.T) {
	t.Parallel()
	// They end because of their size, and not because of their time.
	app := short(t, apptest.Options{}, func(l *api.Limits) { l.Header = 2 * testkit.Wait })
	for name, head := range map[string]string{
		"one header":        "GET /healthz HTTP/1.1\r\nHost: a.example\r\nX-A: " + strings.Repeat("a", 70<<10) + "\r\n\r\n",
		"many headers":      "GET /healthz HTTP/1.1\r\nHost: a.example\r\n" + strings.Repeat("X-A: a\r\n", 9<<10) + "\r\n",
		"the target":        "GET /healthz?" + strings.Repeat("a", 70<<10) + " HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"no end":            "GET /healthz HTTP/1.1\r\nHost: a.example\r\nX-A: " + strings.Repeat("a", 1<<20),
		"no end of a name":  "GET /healthz HTTP/1.1\r\n" + strings.Repeat("a", 1<<20),
		"no end of a line":  strings.Repeat("a", 1<<20),
		"no end of a value": "GET /healthz HTTP/1.1\r\nHost: " + strings.Repeat("a", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := dial(t, app)
			_, _ = io.WriteString(s, head)        // the server may close before its end
			a, err := http.ReadResponse(s.r, nil) //nolint:bodyclose // the socket is closed
			if err != nil {
				require.NotErrorIs(t, err, errDeadline)
				return // the server reset the connection, and the answer is lost
			}
			require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, a.StatusCode)
		})
	}
}

func TestConnectionsThatWaitGiveWayToNewOnes(t *testing.T) {
	t.Parallel()
	const room = 8
	app := short(t, apptest.Options{}, func(l *api.Limits) { l.Connections, l.EvictAfter = room, brief })
	n := app.Tenant(t)
	const post = "POST /v1/boards HTTP/1.1\r\nHost: a.example\r\nContent-Length: 900\r\n"
	for name, start := range map[string]string{
		"that say nothing":         "",
		"that are idle":            health,
		"that drip their headers":  "GET /healthz HTTP/1.1\r\nHost:",
		"that drip a refused body": post + "\r\n",
		"that drip a body":         post + "Authorization: Bearer " + n.Key + "\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			var all []*socket
			for range 3 * room {
				s := dial(t, app)
				s.send(t, start)
				if strings.Contains(name, "drip") {
					s.drip(t)
				}
				all = append(all, s)
			}
			require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, "/v1/me", nil).Status)
			for _, s := range all[:room] {
				_, err := io.Copy(io.Discard, s.r)
				require.NotErrorIs(t, err, errDeadline, "it gave way")
			}
		})
	}
}

func TestAClientThatDoesNotReadGivesWayToNewConnections(t *testing.T) {
	t.Parallel()
	app := short(t, apptest.Options{}, func(l *api.Limits) { l.Connections = 2 })
	n := app.Tenant(t)
	many := strings.Repeat("GET /v1/openapi.json HTTP/1.1\r\nHost: a.example\r\n\r\n", 1000)
	for range 4 {
		s := dial(t, app)
		go func() { _, _ = io.WriteString(s, many) }()
		_, err := s.r.Peek(1) // the server is writing and stays busy
		require.NoError(t, err)
	}
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, "/v1/me", nil).Status)
}

// A vote waits for the post's row, which the test has locked.
func TestARequestThatIsWorkedOnKeepsItsConnection(t *testing.T) {
	t.Parallel()
	app := short(t, apptest.Options{Alone: true}, func(l *api.Limits) { l.Connections, l.EvictAfter = 2, brief })
	n := newFixture(t, app)
	release := hold(t, app, n.ids["postId"])
	s := dial(t, app)
	s.send(t, fmt.Sprintf("POST /v1/posts/%s/votes HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer %s\r\n\r\n",
		n.ids["postId"], n.Key))
	awaitWaiting(t, app, 1)
	for range 20 {
		other := dial(t, app)
		other.send(t, health)
		require.Equal(t, http.StatusOK, other.answer(t))
	}
	release()
	require.Equal(t, http.StatusCreated, s.answer(t))
}

// A dripping body that began later ends with its time. The time of the earlier request was
// therefore over, too.
func TestARequestThatIsWorkedOnMayTakeLongerThanItTookToArrive(t *testing.T) {
	t.Parallel()
	app := short(t, apptest.Options{Alone: true}, func(l *api.Limits) { l.Body = brief })
	n := newFixture(t, app)
	release := hold(t, app, n.ids["postId"])
	head := " HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer " + n.Key + "\r\nContent-Length: "
	s, withBody, later := dial(t, app), dial(t, app), dial(t, app)
	s.send(t, "POST /v1/posts/"+n.ids["postId"]+"/votes"+head+"0\r\n\r\n")
	withBody.send(t, "POST /v1/posts/"+n.ids["postId"]+"/comments"+head+"24\r\n\r\n"+`{"body":{"text":"Slow"}}`)
	awaitWaiting(t, app, 2)
	later.send(t, "POST /v1/boards"+head+"900\r\n\r\n{")
	_, text := later.answers(t)
	require.Contains(t, text, "could not be read")
	release()
	require.Equal(t, http.StatusCreated, s.answer(t))
	require.Equal(t, http.StatusCreated, withBody.answer(t))
}
