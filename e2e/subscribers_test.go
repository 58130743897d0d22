package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
)

// countingMailServer accepts every message. It calls at after it has read a message and before it
// answers.
type countingMailServer struct {
	at func(n int)

	mu    sync.Mutex
	taken map[string][]string // Message-IDs by address
}

func (m *countingMailServer) open(t *testing.T) (settings []string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := smtp.NewServer(m)
	s.Domain, s.AllowInsecureAuth, m.taken = "server.test", true, map[string][]string{}
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(func() { _ = s.Close() })
	return []string{"EARSHOT_SMTP_URL=smtp://" + listener.Addr().String(), "EARSHOT_MAIL_FROM=Acme <news@example.com>"}
}

// people returns the number of addresses that got an e-mail.
func (m *countingMailServer) people() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.taken)
}

// NewSession is called for each connection.
func (m *countingMailServer) NewSession(*smtp.Conn) (smtp.Session, error) {
	return &letterbox{countingMailServer: m}, nil
}

type letterbox struct {
	*countingMailServer
	to string
}

func (*letterbox) Reset()                               {}
func (*letterbox) Logout() error                        { return nil }
func (*letterbox) Mail(string, *smtp.MailOptions) error { return nil }

func (s *letterbox) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	return nil
}

func (s *letterbox) Data(r io.Reader) error {
	m, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, m.Body); err != nil {
		return err
	}
	s.mu.Lock()
	s.taken[s.to] = append(s.taken[s.to], m.Header.Get("Message-ID"))
	n := len(s.taken)
	s.mu.Unlock()
	s.at(n)
	return nil
}

// afterDigestKill covers a missing heartbeat, which takes a minute, and the lease of an e-mail,
// which takes another.
const afterDigestKill = 3 * time.Minute

// TestKillsInTheMiddleOfAWindowAndOfItsEMailsLoseNoneAndRepeatAtMostTheOneUnderWay kills the
// process directly after the change. It kills it again when the mail server has accepted an e-mail
// that isn't recorded yet.
func TestKillsInTheMiddleOfAWindowAndOfItsEMailsLoseNoneAndRepeatAtMostTheOneUnderWay(t *testing.T) {
	tier.Slow(t, "kills the process in the middle of a window")
	t.Parallel()
	launched := make(chan *process, 1)
	var once sync.Once
	server := &countingMailServer{at: func(n int) {
		if n == 3 {
			once.Do(func() { (<-launched).kill() })
		}
	}}
	database := testkit.Database(t)
	settings := append(append(temporalSettings(t), server.open(t)...), "EARSHOT_PUBLIC_ORIGIN=https://feedback.example.com")
	p := newProgramOn(t, database, settings...)
	_, err := p.command("org", "update", "--subscriber-mails", "--subscriber-mails-allowed")
	require.NoError(t, err)
	alone := p.serveAlone()
	board := p.must(http.MethodPost, "/v1/boards", map[string]any{"name": "Ideas", "public": true})
	post := p.must(http.MethodPost, "/v1/boards/"+board+"/posts", map[string]any{"title": "Dark mode"})
	const people = 6
	for i := range people {
		who := fmt.Sprintf("u-%d", i)
		p.must(http.MethodPost, "/v1/contacts/identify", map[string]any{"externalUserId": who, "email": who + "@example.com"})
		p.must(http.MethodPost, "/v1/posts/"+post+"/votes", map[string]any{"externalUserId": who})
	}
	p.must(http.MethodPatch, "/v1/posts/"+post, map[string]any{"status": "planned"})
	alone.kill()
	c, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	_, err = c.Exec(t.Context(), "UPDATE subscriber_updates SET created_at = created_at - interval '11 minutes'")
	require.NoError(t, err)

	running := p.launch()
	launched <- running
	<-running.ended
	p.serve()
	require.Eventually(t, func() bool { return server.people() == people }, afterDigestKill, pollInterval)
	require.Eventually(t, func() bool {
		var left int
		err := c.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM subscriber_mails) + (SELECT count(*) FROM subscriber_updates)").Scan(&left)
		return err == nil && left == 0
	}, afterDigestKill, pollInterval)
	twice := 0
	for _, ids := range server.taken {
		require.LessOrEqual(t, len(ids), 2)
		if len(ids) == 2 {
			require.Equal(t, ids[0], ids[1])
			twice++
		}
		require.True(t, strings.HasPrefix(ids[0], "<sml_"))
	}
	require.Equal(t, 1, twice, "the one that the server had taken when nobody noted it")
}
