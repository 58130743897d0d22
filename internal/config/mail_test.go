package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/config"
)

func TestTheSchemeOfAMailServerSaysHowItIsEncrypted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.SMTP{
		"smtp://mail.example.com":        {Host: "mail.example.com", Port: "587", Encryption: config.STARTTLS},
		"SMTP://mail.example.com:25":     {Host: "mail.example.com", Port: "25", Encryption: config.STARTTLS},
		"smtps://mail.example.com/":      {Host: "mail.example.com", Port: "465", Encryption: config.ImplicitTLS},
		"smtps://[2001:db8::1]:4650":     {Host: "2001:db8::1", Port: "4650", Encryption: config.ImplicitTLS},
		"smtp+plain://relay.example.com": {Host: "relay.example.com", Port: "25", Encryption: config.Plain},
		"smtp://localhost:1025":          {Host: "localhost", Port: "1025", Encryption: config.Plain},
		"smtp://[::1]:1025":              {Host: "::1", Port: "1025", Encryption: config.Plain},
		"smtps://127.0.0.1":              {Host: "127.0.0.1", Port: "465", Encryption: config.ImplicitTLS},
		"smtp://localhost.example.com":   {Host: "localhost.example.com", Port: "587", Encryption: config.STARTTLS},
		"smtp+plain://me:pw@[::1]":       {Host: "::1", Port: "25", Encryption: config.Plain, User: "me", Password: "pw"},
		"smtp://me@example.com:p%2F%23@mail.example.com": {
			Host: "mail.example.com", Port: "587", Encryption: config.STARTTLS, User: "me@example.com", Password: "p/#",
		},
	} {
		c, err := config.Load(with("EARSHOT_SMTP_URL="+text, "EARSHOT_MAIL_FROM=no-reply@example.com"))
		require.NoError(t, err, text)
		require.Equal(t, want, c.SMTP, text)
	}
}

func TestAMailServerThatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	for text, complaint := range map[string]string{
		"mail.example.com":                              "must begin with smtp://, smtps:// or smtp+plain://",
		"mail.example.com:587":                          "must begin with smtp://",
		"https://mail.example.com":                      "must begin with smtp://",
		"smtp://":                                       "must name a host",
		"smtp://mail.example.com:0":                     "must name a port of 1 to 65535",
		"smtp://mail.example.com:65536":                 "must name a port of 1 to 65535",
		"smtp://mail.example.com:port":                  "is not a URL",
		"smtp://me@mail.example.com":                    "must name both user and password, or neither",
		"smtp://:pw@mail.example.com":                   "must name both user and password, or neither",
		"smtp://me:5%zz@mail.example.com":               "write : / ? # % as %3A %2F %3F %23 %25",
		"smtp://me:5#6@mail.example.com":                "write / ? # as %2F %3F %23",
		"smtp://mail.example.com/in":                    "ends with the port",
		"smtp://mail.example.com?tls=no":                "ends with the port",
		"smtp+plain://me:pw@mail.example.com":           "must not name a user with smtp+plain://",
		"smtp+plain://me@/?x":                           "a host; must name both user and password, or neither; must not",
		"smtp://mail.example.com\r\nRCPT TO:<a@b.test>": "is not a URL",
	} {
		_, err := config.Load(with("EARSHOT_SMTP_URL="+text, "EARSHOT_MAIL_FROM=no-reply@example.com"))
		require.ErrorContains(t, err, "EARSHOT_SMTP_URL: ", text)
		require.ErrorContains(t, err, complaint, text)
	}
}

func TestAMailServerNeedsASender(t *testing.T) {
	t.Parallel()
	_, err := config.Load(with("EARSHOT_SMTP_URL=smtp://mail.example.com"))
	require.EqualError(t, err, "settings:\n"+
		"  EARSHOT_MAIL_FROM: is missing; EARSHOT_SMTP_URL needs a sender, such as Earshot <no-reply@example.com>")
	c, err := config.Load(with("EARSHOT_MAIL_DIR=/tmp/mail"))
	require.NoError(t, err, "a development mailbox doesn't")
	require.Zero(t, c.MailFrom)
}

func TestASenderHasANameOrNone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.MailAddress{
		"no-reply@example.com":                   {Address: "no-reply@example.com"},
		"Earshot <no-reply@example.com>":         {Name: "Earshot", Address: "no-reply@example.com"},
		`"Füßchen, Inc." <no-reply@example.com>`: {Name: "Füßchen, Inc.", Address: "no-reply@example.com"},
	} {
		c, err := config.Load(with("EARSHOT_MAIL_FROM=" + text))
		require.NoError(t, err, text)
		require.Equal(t, want, c.MailFrom)
	}
	for _, text := range []string{"Earshot", "a@b.test, c@d.test", "a@b.test\r\nBcc: c@d.test", "<>"} {
		_, err := config.Load(with("EARSHOT_MAIL_FROM=" + text))
		require.ErrorContains(t, err, "EARSHOT_MAIL_FROM: is not an e-mail address such as ", text)
	}
}
