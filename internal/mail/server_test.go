package mail_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"log/slog"
	"net"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"earshot/internal/config"
	"earshot/internal/mail"
)

// wait bounds what must happen. A busy machine may take seconds for what otherwise takes milliseconds.
const wait = time.Minute

// logTo writes JSON lines. The tests here don't import testkit, which needs the packages of the database. So their
// results stay cached when one of those is edited.
func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewJSONHandler(w, nil)) }

// office is a mail server on loopback.
type office struct {
	options
	t      *testing.T
	server config.SMTP // as in a setting
	roots  *x509.CertPool

	mu      sync.Mutex
	arrived []arrival
	steps   []string // of the clients: auth, mail, rcpt, data
}

// options configure an office. The zero options use STARTTLS, need no login and accept everything.
type options struct {
	encryption config.Encryption
	// hidesSTARTTLS leaves STARTTLS out of the offer, as an attacker in the network would.
	hidesSTARTTLS bool
	// spoil changes the certificate for 127.0.0.1 before it is signed.
	spoil func(*x509.Certificate)
	// logins are the login methods. With at least one, clients must log in.
	logins []string
	// at is called at each step and returns its result. It may be nil.
	at func(step string) error
	// utf8 offers SMTPUTF8.
	utf8 bool
}

// arrival is an accepted message.
type arrival struct {
	from, to, user string
	askedUTF8      bool // by the extension SMTPUTF8
	encrypted      bool
	text           string
}

// user and password are valid in every office.
const (
	user     = "mailer@example.com"
	password = "hunter2"
)

// open starts an office and closes it when the test ends.
func open(t *testing.T, o options) *office {
	t.Helper()
	if o.encryption == "" {
		o.encryption = config.STARTTLS
	}
	f := &office{options: o, t: t}
	certificate := f.certify()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	f.server = config.SMTP{Host: host, Port: port, Encryption: o.encryption}
	s := smtp.NewServer(f)
	s.Domain, s.EnableSMTPUTF8, s.ErrorLog = "office.test", o.utf8, log.New(io.Discard, "", 0)
	tlsConfig := &tls.Config{Certificates: []tls.Certificate{certificate}}
	switch {
	case o.encryption == config.ImplicitTLS:
		listener = tls.NewListener(listener, tlsConfig)
	case o.encryption == config.STARTTLS && !o.hidesSTARTTLS:
		s.TLSConfig = tlsConfig
	default:
		s.AllowInsecureAuth = true
	}
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(func() { _ = s.Close() })
	return f
}

// client returns a Mailer for the office, with options changed by with.
func (f *office) client(with ...func(*mail.Options)) *mail.Mailer {
	f.t.Helper()
	o := mail.Options{
		SMTP: f.server, RootCAs: f.roots, Log: logTo(f.t.Output()), Timeout: wait,
		From: netmail.Address{Name: "Earshot", Address: "no-reply@example.com"},
	}
	for _, change := range with {
		change(&o)
	}
	return mail.New(o)
}

// asUser logs in with a password.
func asUser(password string) func(*mail.Options) {
	return func(o *mail.Options) { o.SMTP.User, o.SMTP.Password = user, password }
}

// step records a step and returns the office's result.
func (f *office) step(name string) error {
	f.mu.Lock()
	f.steps = append(f.steps, name)
	f.mu.Unlock()
	if f.at == nil {
		return nil
	}
	return f.at(name)
}

// seen returns the steps so far.
func (f *office) seen() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.steps, " ")
}

// only returns the message that arrived, and requires that it is the only one.
func (f *office) only() arrival {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Len(f.t, f.arrived, 1)
	return f.arrived[0]
}

// NewSession is called for each connection.
func (f *office) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &session{office: f, conn: c}, nil
}

// session is one connection.
type session struct {
	*office
	conn *smtp.Conn
	arrival
}

func (s *session) Reset()                   {}
func (s *session) Logout() error            { return nil }
func (s *session) AuthMechanisms() []string { return s.logins }

func (s *session) Auth(way string) (sasl.Server, error) {
	check := func(name, word string) error {
		if err := s.step("auth"); err != nil {
			return err
		}
		if name != user || word != password {
			return smtp.ErrAuthFailed
		}
		s.user = name
		return nil
	}
	if way == "LOGIN" {
		return &loginServer{check: check}, nil
	}
	return sasl.NewPlainServer(func(_, name, word string) error { return check(name, word) }), nil
}

func (s *session) Mail(from string, o *smtp.MailOptions) error {
	if s.logins != nil && s.user == "" {
		return smtp.ErrAuthRequired
	}
	_, s.encrypted = s.conn.TLSConnectionState()
	s.from, s.askedUTF8 = from, o.UTF8
	return s.step("mail")
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	return s.step("rcpt")
}

func (s *session) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := s.step("data"); err != nil {
		return err
	}
	s.text = string(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived = append(s.arrived, s.arrival)
	return nil
}

// loginServer asks for the user, then for the password.
type loginServer struct {
	check func(name, word string) error
	said  []string
}

func (l *loginServer) Next(response []byte) (challenge []byte, done bool, err error) {
	if response != nil {
		l.said = append(l.said, string(response))
	}
	switch len(l.said) {
	case 0:
		return []byte("Username:"), false, nil
	case 1:
		return []byte("Password:"), false, nil
	default:
		return nil, true, l.check(l.said[0], l.said[1])
	}
}
