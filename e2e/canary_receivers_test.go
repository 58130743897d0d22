package e2e

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"
)

// receiver starts an HTTP server and returns its address with the scheme.
func receiver(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	r := httptest.NewServer(answer)
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(r.Close)
	return r.URL
}

// encrypted starts a receiver with an untrusted certificate.
func encrypted(t *testing.T) string {
	t.Helper()
	r := httptest.NewUnstartedServer(http.NotFoundHandler())
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.StartTLS()
	t.Cleanup(r.Close)
	return r.URL
}

// says starts a receiver on raw TCP. It reads the beginning of a request, writes the answer and
// ends the connection. With an empty answer it waits until the other side ends the connection.
func says(t *testing.T, answer string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_, _ = c.Read(make([]byte, 1))
				if answer == "" {
					_, _ = io.Copy(io.Discard, c)
				}
				_, _ = fmt.Fprint(c, answer)
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

// nobody returns an address that refuses connections.
func nobody(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return "http://" + listener.Addr().String()
}

// mailServer accepts mail from every client with the password.
type mailServer struct {
	address, user, password string

	mu    sync.Mutex
	mails []string
}

func newMailServer(t *testing.T, user, password string) *mailServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	m := &mailServer{address: listener.Addr().String(), user: user, password: password}
	s := smtp.NewServer(m)
	s.Domain, s.AllowInsecureAuth, s.ErrorLog = "mail.test", true, log.New(io.Discard, "", 0)
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(func() { _ = s.Close() })
	return m
}

func (m *mailServer) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.mails...)
}

// NewSession is called for each connection.
func (m *mailServer) NewSession(*smtp.Conn) (smtp.Session, error) { return &mailSession{m}, nil }

type mailSession struct{ *mailServer }

func (s *mailSession) Reset()                               {}
func (s *mailSession) Logout() error                        { return nil }
func (s *mailSession) AuthMechanisms() []string             { return []string{sasl.Plain} }
func (s *mailSession) Mail(string, *smtp.MailOptions) error { return nil }

// Rcpt refuses the first recipient, with a typical message that quotes the address.
func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, "")
	if len(s.mails) == 1 {
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 2, 0}, Message: "try later: " + to}
	}
	return nil
}

func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != s.user || password != s.password {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

func (s *mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, string(text))
	return err
}
