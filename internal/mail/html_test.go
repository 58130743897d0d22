package mail_test

import (
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"earshot/internal/mail"
)

// news is a message with a link to unsubscribe.
func news() mail.Message {
	m := message()
	m.HTML, m.Unsubscribe = "<p>Grüße</p>\n", "https://feedback.example.com/b/acme/-/unsubscribe?token=AbC-_9"
	return m
}

func TestAMessageWithHTMLHasItsTextFirstAndTheHeadersOfOneClick(t *testing.T) {
	t.Parallel()
	f := open(t, options{})
	require.NoError(t, f.client().Send(t.Context(), news()))
	raw := f.only().text
	requireSafe(t, raw)
	got, err := netmail.ReadMessage(strings.NewReader(raw))
	require.NoError(t, err)
	require.Equal(t, "<https://feedback.example.com/b/acme/-/unsubscribe?token=AbC-_9>", got.Header.Get("List-Unsubscribe"))
	require.Equal(t, "List-Unsubscribe=One-Click", got.Header.Get("List-Unsubscribe-Post"))
	media, params, err := mime.ParseMediaType(got.Header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/alternative", media)
	parts := multipart.NewReader(got.Body, params["boundary"])
	for _, want := range [][2]string{{"text/plain; charset=UTF-8", "It failed 50 times in a row."}, {"text/html; charset=UTF-8", "<p>Grüße</p>"}} {
		part, err := parts.NextRawPart()
		require.NoError(t, err)
		require.Equal(t, want[0], part.Header.Get("Content-Type"))
		body, err := io.ReadAll(quotedprintable.NewReader(part))
		require.NoError(t, err)
		require.Equal(t, want[1], strings.TrimSpace(string(body)))
	}
	_, err = parts.NextRawPart()
	require.ErrorIs(t, err, io.EOF)
}

func TestALinkToUnsubscribeThatCouldEndItsHeaderIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	client := mail.New(mail.Options{Dir: dir, Log: logTo(t.Output())})
	for _, link := range []string{
		"https://a.test/\r\nBcc: eve@evil.test", "https://a.test/>, <mailto:eve@evil.test", "mailto:eve@evil.test", "javascript:alert(1)",
		"/b/acme", "https://", "https://a.test/ü", "https://a.test/ x", "https://a.test/" + strings.Repeat("x", 1000),
	} {
		m := news()
		m.Unsubscribe = link
		requireError(t, client.Send(t.Context(), m), mail.Error{Reason: mail.BadMessage}, true)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Empty(t, files)
	long := news()
	long.Unsubscribe = "https://a.test/" + strings.Repeat("x", 800)
	require.NoError(t, client.Send(t.Context(), long))
	raw, err := os.ReadFile(filepath.Join(dir, long.ID+".eml"))
	require.NoError(t, err)
	requireSafe(t, string(raw))
	got, err := netmail.ReadMessage(strings.NewReader(string(raw)))
	require.NoError(t, err)
	require.Equal(t, "<"+long.Unsubscribe+">", got.Header.Get("List-Unsubscribe"))
}

func TestARefusalSaysWhetherTheMailboxIsMissing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer           smtp.SMTPError
		unknown, refused bool
	}{
		"no such user":          {smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "<ada@example.com> unknown"}, true, true},
		"disabled":              {smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 2, 1}, Message: "disabled"}, true, true},
		"doesn't like us":       {smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "blocked"}, false, true},
		"says nothing further":  {smtp.SMTPError{Code: 550, EnhancedCode: smtp.NoEnhancedCode, Message: "5.1.1x no"}, false, true},
		"full":                  {smtp.SMTPError{Code: 452, EnhancedCode: smtp.EnhancedCode{4, 2, 2}, Message: "full"}, false, true},
		"closes the connection": {smtp.SMTPError{Code: 421, EnhancedCode: smtp.EnhancedCode{4, 3, 2}, Message: "bye"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t, options{at: func(step string) error {
				if step != "rcpt" {
					return nil
				}
				return &c.answer
			}})
			err := f.client().Send(t.Context(), news())
			require.Error(t, err)
			require.Equal(t, c.unknown, mail.UnknownRecipient(err))
			require.Equal(t, c.refused, mail.Refused(err))
		})
	}
}
