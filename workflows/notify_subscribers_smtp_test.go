package workflows_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

// countingMailServer is a mail server that can fail.
type countingMailServer struct {
	// mail, rcpt and data answer a sender, a recipient and a message. data also gets the number of
	// earlier messages. nil accepts everything.
	mail func() error
	rcpt func(to string) error
	data func(n int, conn net.Conn) error

	mu      sync.Mutex
	arrived []arrival
}

type arrival struct {
	to, raw string
	at      time.Time
}

// open starts the server and returns the service's settings for it.
func (o *countingMailServer) open(t *testing.T) []string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := smtp.NewServer(o)
	s.Domain, s.AllowInsecureAuth = "mail.test", true
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(func() { _ = s.Close() })
	return []string{"EARSHOT_SMTP_URL=smtp://" + listener.Addr().String(), "EARSHOT_MAIL_FROM=Acme <news@example.com>"}
}

func (o *countingMailServer) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &counter{countingMailServer: o, conn: c.Conn()}, nil
}

func (o *countingMailServer) seen() []arrival {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]arrival(nil), o.arrived...)
}

// counter is one connection to the server.
type counter struct {
	*countingMailServer
	conn net.Conn
	to   string
}

func (*counter) Reset()        {}
func (*counter) Logout() error { return nil }

func (c *counter) Mail(string, *smtp.MailOptions) error {
	if c.mail == nil {
		return nil
	}
	return c.mail()
}

func (c *counter) Rcpt(to string, _ *smtp.RcptOptions) error {
	c.to = to
	if c.rcpt == nil {
		return nil
	}
	return c.rcpt(to)
}

func (c *counter) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	c.mu.Lock()
	n := len(c.arrived)
	c.arrived = append(c.arrived, arrival{c.to, string(raw), time.Now()})
	c.mu.Unlock()
	if c.data == nil {
		return nil
	}
	return c.data(n, c.conn)
}

func TestAnAnswerOfTheMailServerThatGetsLostSendsTheSameMessageAgain(t *testing.T) {
	t.Parallel()
	server := &countingMailServer{data: func(n int, conn net.Conn) error {
		if n == 0 {
			_ = conn.Close() // it has accepted the message, but the client never learns of it
		}
		return nil
	}}
	p := newMailedTenant(t, mailing(t, apptest.Options{Worker: true, Environ: server.open(t)}))
	p.votes(t, "voter@example.com", p.post, "en")
	p.moves(t, p.post, "planned")
	p.passes(t)
	p.isTold(t)
	got := server.seen()
	require.Len(t, got, 2)
	require.Equal(t, readLetter(t, got[0].raw).Get("Message-ID"), readLetter(t, got[1].raw).Get("Message-ID"))
}

func TestAnAddressThatTheServerDoesntKnowIsMailedNeverAgainAndOthersAre(t *testing.T) {
	t.Parallel()
	server := &countingMailServer{rcpt: func(to string) error {
		switch to {
		case "gone@example.com":
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
		case "unliked@example.com":
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "not from you"}
		case "full@example.com":
			return &smtp.SMTPError{Code: 452, EnhancedCode: smtp.EnhancedCode{4, 2, 2}, Message: "mailbox full"}
		}
		return nil
	}}
	p := newMailedTenant(t, mailing(t, apptest.Options{Worker: true, Environ: server.open(t)}))
	for _, who := range []string{"gone", "unliked", "full", "fine"} {
		p.votes(t, who+"@example.com", p.post, "en")
	}
	p.moves(t, p.post, "planned")
	p.passes(t)
	require.Eventually(t, func() bool { return len(server.seen()) == 1 }, testkit.Wait, testkit.Tick)
	// A temporary rejection is retried later, and the other e-mails are sent.
	require.Eventually(t, func() bool {
		var later bool
		p.query(t, "SELECT count(*) = 1 AND coalesce(min(due_at) > now() + interval '4 minutes', false) FROM subscriber_mails WHERE organization_id = $1", &later)
		return later
	}, testkit.Wait, testkit.Tick)
	var suppressed []string
	p.query(t, `SELECT array_agg(c.email::text) FROM mail_suppressions s JOIN contacts c ON c.email_hash = s.email_hash WHERE c.organization_id = $1`, &suppressed)
	require.Equal(t, []string{"gone@example.com"}, suppressed, "a server that doesn't like us says nothing of the mailbox")
	p.run(t, "UPDATE subscriber_mails SET created_at = now() - interval '73 hours', due_at = now() WHERE organization_id = $1")
	p.looks(t)
	p.isTold(t)
	require.Len(t, server.seen(), 1)
	require.Equal(t, "fine@example.com", server.seen()[0].to)
}

func TestAnEmailWaitsUntilTheMailServerAcceptsOurSender(t *testing.T) {
	t.Parallel()
	var refused atomic.Int32
	server := &countingMailServer{mail: func() error {
		if refused.Add(1) == 1 {
			return &smtp.SMTPError{Code: 553, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "sender not allowed"}
		}
		return nil
	}}
	p := newMailedTenant(t, mailing(t, apptest.Options{Worker: true, Environ: server.open(t)}))
	p.votes(t, "voter@example.com", p.post, "en")
	p.moves(t, p.post, "planned")
	p.passes(t)
	p.isTold(t)
	require.Len(t, server.seen(), 1)
}

func TestAMailServerIsSentNoMoreASecondThanTheSettingSays(t *testing.T) {
	t.Parallel()
	server := &countingMailServer{}
	p := newMailedTenant(t, mailing(t, apptest.Options{Worker: true, Environ: append(server.open(t), "EARSHOT_MAIL_PER_SECOND=2")}))
	for _, who := range []string{"a", "b", "c", "d", "e", "f"} {
		p.votes(t, who+"@example.com", p.post, "en")
	}
	p.moves(t, p.post, "planned")
	p.passes(t)
	p.isTold(t)
	got := server.seen()
	require.Len(t, got, 6)
	// The first two are sent immediately, and the others half a second apart.
	require.GreaterOrEqual(t, got[5].at.Sub(got[0].at), 1900*time.Millisecond)
}
