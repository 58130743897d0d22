package mail_test

import (
	"context"
	"crypto/x509"
	"fmt"
	netmail "net/mail"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"earshot/internal/config"
	"earshot/internal/mail"
)

// message is a message that every server accepts.
func message() mail.Message {
	return mail.Message{
		ID: "whk_1-usr_1", To: netmail.Address{Name: "Ada", Address: "ada@example.com"},
		Subject: "Your webhook was disabled", Text: "It failed 50 times in a row.\n",
	}
}

// requireError compares the whole error and the result of Permanent.
func requireError(t *testing.T, err error, want mail.Error, permanent bool) {
	t.Helper()
	var got *mail.Error
	require.ErrorAs(t, err, &got)
	require.Equal(t, want, *got)
	require.Equal(t, permanent, mail.Permanent(err))
}

func TestAMessageArrivesAsTheSettingsSay(t *testing.T) {
	t.Parallel()
	for _, encryption := range []config.Encryption{config.STARTTLS, config.ImplicitTLS, config.Plain} {
		t.Run(string(encryption), func(t *testing.T) {
			t.Parallel()
			f := open(t, options{encryption: encryption})
			require.NoError(t, f.client().Send(t.Context(), message()))
			got := f.only()
			require.Equal(t, "no-reply@example.com", got.from)
			require.Equal(t, "ada@example.com", got.to)
			require.Equal(t, encryption != config.Plain, got.encrypted)
			require.Contains(t, got.text, "\r\nIt failed 50 times in a row.\r\n")
		})
	}
}

func TestAServerWithoutSTARTTLSGetsNeitherPasswordNorMessage(t *testing.T) {
	t.Parallel()
	f := open(t, options{hidesSTARTTLS: true, logins: []string{"PLAIN"}})
	requireError(t, f.client(asUser(password)).Send(t.Context(), message()), mail.Error{Reason: mail.NoSTARTTLS}, false)
	require.Empty(t, f.seen())
}

func TestACertificateThatProvesNothingIsRefused(t *testing.T) {
	t.Parallel()
	strangers := func(o *mail.Options) { o.RootCAs = x509.NewCertPool() }
	for name, c := range map[string]struct {
		spoil  func(*x509.Certificate)
		client []func(*mail.Options)
	}{
		"of another host":      {spoil: func(c *x509.Certificate) { c.IPAddresses[0][3] = 2 }},
		"expired":              {spoil: func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }},
		"of unknown authority": {client: []func(*mail.Options){strangers}},
	} {
		for _, encryption := range []config.Encryption{config.STARTTLS, config.ImplicitTLS} {
			t.Run(name+" "+string(encryption), func(t *testing.T) {
				t.Parallel()
				f := open(t, options{encryption: encryption, spoil: c.spoil, logins: []string{"PLAIN"}})
				err := f.client(append(c.client, asUser(password))...).Send(t.Context(), message())
				requireError(t, err, mail.Error{Reason: mail.CertificateRefused}, false)
				require.Empty(t, f.seen())
			})
		}
	}
}

func TestTheSMTPClientLogsInWithAMechanismThatTheServerOffers(t *testing.T) {
	t.Parallel()
	for _, encryption := range []config.Encryption{config.STARTTLS, config.ImplicitTLS, config.Plain} {
		for _, ways := range [][]string{{"PLAIN", "LOGIN"}, {"LOGIN"}} {
			t.Run(fmt.Sprint(encryption, ways), func(t *testing.T) {
				t.Parallel()
				f := open(t, options{encryption: encryption, logins: ways})
				require.NoError(t, f.client(asUser(password)).Send(t.Context(), message()))
				require.Equal(t, user, f.only().user)
			})
		}
	}
}

// An operator can fix the setting, and then the message can be sent.
func TestALoginThatIsRefusedMayPass(t *testing.T) {
	t.Parallel()
	f := open(t, options{logins: []string{"PLAIN"}})
	err := f.client(asUser("hunter3")).Send(t.Context(), message())
	requireError(t, err, mail.Error{Reason: mail.LoginRefused, Code: 535}, false)

	f = open(t, options{logins: []string{"GSSAPI"}})
	requireError(t, f.client(asUser(password)).Send(t.Context(), message()), mail.Error{Reason: mail.LoginRefused}, false)

	f = open(t, options{})
	requireError(t, f.client(asUser(password)).Send(t.Context(), message()), mail.Error{Reason: mail.LoginRefused}, false)
	require.Empty(t, f.seen())
}

func TestARefusalOf500AndAboveIsPermanentAndOneOf400IsNot(t *testing.T) {
	t.Parallel()
	for step, reason := range map[string]mail.Reason{
		"mail": mail.SenderRefused, "rcpt": mail.RecipientRefused, "data": mail.MessageRefused,
	} {
		for code, permanent := range map[int]bool{421: false, 450: false, 452: false, 550: true, 554: true} {
			t.Run(fmt.Sprint(step, code), func(t *testing.T) {
				t.Parallel()
				f := open(t, options{at: func(at string) error {
					if at != step {
						return nil
					}
					return &smtp.SMTPError{Code: code, Message: "<ada@example.com> is not welcome here"}
				}})
				err := f.client().Send(t.Context(), message())
				requireError(t, err, mail.Error{Reason: reason, Code: code}, permanent)
				require.EqualError(t, err, fmt.Sprintf("send e-mail: %s (SMTP %d)", reason, code))
			})
		}
	}
}

func TestNoErrorShowsAnAddressAPasswordOrTheServersWords(t *testing.T) {
	t.Parallel()
	refuse := func(step string) func(string) error {
		return func(at string) error {
			if at != step {
				return nil
			}
			return &smtp.SMTPError{Code: 550, Message: "mailer@example.com hunter2 to <ada@example.com>: go away"}
		}
	}
	for _, step := range []string{"auth", "mail", "rcpt", "data"} {
		f := open(t, options{logins: []string{"PLAIN"}, at: refuse(step)})
		err := f.client(asUser(password)).Send(t.Context(), message())
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
			for _, secret := range []string{"example.com", password, "go away", f.server.Port} {
				require.NotContains(t, text, secret)
			}
		}
	}
}

func TestASendEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	f := open(t, options{at: func(string) error {
		cancel()
		<-t.Context().Done()
		return nil
	}})
	err := f.client().Send(ctx, message())
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, mail.Permanent(err))
}
