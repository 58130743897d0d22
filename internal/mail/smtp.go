package mail

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-faster/errors"
	"github.com/wneessen/go-mail/smtp"

	"earshot/internal/config"
)

// server is a mail server that accepts messages.
type server struct {
	config.SMTP

	name    string // of this machine, for EHLO
	tls     *tls.Config
	timeout time.Duration
}

func newServer(o Options) *server {
	s := &server{
		SMTP: o.SMTP, timeout: o.Timeout,
		tls: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.SMTP.Host, RootCAs: o.RootCAs},
	}
	if s.timeout <= 0 {
		s.timeout = sendTimeout
	}
	var err error
	if s.name, err = os.Hostname(); err != nil || s.name == "" {
		s.name = "localhost"
	}
	return s
}

// send transfers a letter over a connection of its own. The error is an *Error or wraps that of
// ctx.
func (s *server) send(ctx context.Context, l letter) error {
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := s.connect(within, l)
	// The server's reply counts, even if the server hung afterwards. Only a broken connection may
	// be the effect of ctx or of our timeout.
	var e *Error
	broke := errors.As(err, &e) && *e == (Error{Reason: ConnectionFailed})
	switch {
	case broke && ctx.Err() != nil:
		return errors.Wrap(ctx.Err(), "send e-mail")
	case broke && within.Err() != nil:
		return &Error{Reason: Timeout}
	default:
		return err
	}
}

// connect closes the connection when ctx ends, which also ends pending reads and writes.
func (s *server) connect(ctx context.Context, l letter) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(s.Host, s.Port))
	if err != nil {
		return failed(ConnectionFailed, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if s.Encryption == config.ImplicitTLS {
		return s.talk(tls.Client(conn, s.tls), l)
	}
	return s.talk(conn, l)
}

// talk is the whole conversation: greeting, encryption, login, message.
func (s *server) talk(conn net.Conn, l letter) error {
	c, err := smtp.NewClient(conn, s.Host) // waits for the greeting
	if err != nil {
		return failed(ConnectionFailed, err)
	}
	// Quit is a courtesy. Its result does not change the outcome.
	defer func() { _ = c.Quit() }()
	// For ASCII addresses the extension is not needed. A later server without it might return the
	// message.
	c.SkipSMTPUTF8(isASCII(l.from + l.to))
	for _, step := range []struct {
		refused Reason
		do      func() error
	}{
		{ConnectionFailed, func() error { return c.Hello(s.name) }},
		{ConnectionFailed, func() error { return s.encrypt(c) }},
		{LoginRefused, func() error { return s.login(c) }},
		{SenderRefused, func() error { return c.Mail("<" + l.from + ">") }},
		{RecipientRefused, func() error { return c.Rcpt("<" + l.to + ">") }},
		{MessageRefused, func() error { return write(c, l.text) }},
	} {
		if err := step.do(); err != nil {
			return failed(step.refused, err)
		}
	}
	return nil
}

// encrypt never continues without encryption, even if an attacker removed STARTTLS from the
// server's reply.
func (s *server) encrypt(c *smtp.Client) error {
	if s.Encryption != config.STARTTLS {
		return nil
	}
	if offered, _ := c.Extension("STARTTLS"); !offered {
		return &Error{Reason: NoSTARTTLS}
	}
	return c.StartTLS(s.tls)
}

// login supports PLAIN and LOGIN, because every provider has one of them. The connection is
// encrypted or local, because config.SMTP accepts a user only then.
func (s *server) login(c *smtp.Client) error {
	if s.User == "" {
		return nil
	}
	_, text := c.Extension("AUTH")
	ways, inClear := strings.Fields(text), s.Encryption == config.Plain
	switch {
	case slices.Contains(ways, "PLAIN"):
		return c.Auth(smtp.PlainAuth("", s.User, s.Password, s.Host, inClear))
	case slices.Contains(ways, "LOGIN"):
		return c.Auth(smtp.LoginAuth(s.User, s.Password, s.Host, inClear))
	default:
		return &Error{Reason: LoginRefused}
	}
}

// write sends headers and body and waits for the server's reply.
func write(c *smtp.Client, text []byte) error {
	to, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := to.Write(text); err != nil {
		return err
	}
	return to.Close()
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}
