package mail_test

import (
	"io"
	"mime"
	"mime/quotedprintable"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/mail"
)

// readable is a message as a mail program shows it.
type readable struct {
	netmail.Header
	raw, text string
}

// read parses a message as a mail program does.
func read(t *testing.T, raw string) readable {
	t.Helper()
	parsed, err := netmail.ReadMessage(strings.NewReader(raw))
	require.NoError(t, err)
	require.Equal(t, "quoted-printable", parsed.Header.Get("Content-Transfer-Encoding"))
	text, err := io.ReadAll(quotedprintable.NewReader(parsed.Body))
	require.NoError(t, err)
	return readable{Header: parsed.Header, raw: raw, text: string(text)}
}

func (r readable) subject(t *testing.T) string {
	t.Helper()
	text, err := new(mime.WordDecoder).DecodeHeader(r.Get("Subject"))
	require.NoError(t, err)
	return text
}

func (r readable) address(t *testing.T, header string) netmail.Address {
	t.Helper()
	list, err := r.AddressList(header)
	require.NoError(t, err)
	require.Len(t, list, 1)
	return *list[0]
}

// written sends a message to a development mailbox and reads the file.
func written(t *testing.T, m mail.Message) readable {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, mail.New(mail.Options{Dir: dir, Log: logTo(t.Output())}).Send(t.Context(), m))
	raw, err := os.ReadFile(filepath.Join(dir, m.ID+".eml"))
	require.NoError(t, err)
	return read(t, string(raw))
}

func TestAMessageHasTheHeadersThatMailSystemsWant(t *testing.T) {
	t.Parallel()
	before := time.Now().Truncate(time.Second)
	f := open(t, options{})
	require.NoError(t, f.client().Send(t.Context(), message()))
	got := read(t, f.only().text)
	require.Equal(t, "<whk_1-usr_1@example.com>", got.Get("Message-ID"))
	require.Equal(t, "auto-generated", got.Get("Auto-Submitted"))
	require.Equal(t, "1.0", got.Get("MIME-Version"))
	require.Equal(t, "text/plain; charset=UTF-8", got.Get("Content-Type"))
	require.Equal(t, "Your webhook was disabled", got.Get("Subject"))
	require.Equal(t, netmail.Address{Name: "Earshot", Address: "no-reply@example.com"}, got.address(t, "From"))
	require.Equal(t, netmail.Address{Name: "Ada", Address: "ada@example.com"}, got.address(t, "To"))
	date, err := got.Date()
	require.NoError(t, err)
	require.WithinRange(t, date, before, time.Now())
	require.Len(t, got.Header, 9, "and no others, such as one that names the software")
}

func TestTextOfAnyLanguageArrives(t *testing.T) {
	t.Parallel()
	m := message()
	m.To.Name = "Zoë \"Ω\" Łukasz, 山田"
	m.Subject = "Füßchen — вебхук отключён 🙈 " + strings.Repeat("長い", 40)
	m.Text = "Grüße = 50 %\n.\n..\n" + strings.Repeat("ж", 2000) + "\nend"
	f := open(t, options{})
	require.NoError(t, f.client().Send(t.Context(), m))
	got := read(t, f.only().text)
	require.Equal(t, m.Subject, got.subject(t))
	require.Equal(t, m.To, got.address(t, "To"))
	require.Equal(t, m.Text, strings.ReplaceAll(strings.TrimSuffix(got.text, "\r\n"), "\r\n", "\n"))
	requireSafe(t, got.raw)
}

// requireSafe checks the limits that any server may enforce. The text is ASCII, with short lines
// that end in CR LF and contain no other line break.
func requireSafe(t *testing.T, raw string) {
	t.Helper()
	for line := range strings.SplitSeq(raw, "\r\n") {
		require.LessOrEqual(t, len(line), 998)
		require.NotContains(t, line, "\r")
		require.NotContains(t, line, "\n")
	}
	require.False(t, strings.ContainsFunc(raw, func(r rune) bool { return r > 126 || r < ' ' && r != '\r' && r != '\n' }))
}

func TestASubjectIsOneLineOfBoundedLength(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string]string{
		"one\r\n two\tthree\x00\u2028four": "one two three four",
		"  ":                               "",
		"broken \xff\xfe":                  "broken \uFFFD",
		"invoice\u202egnp.exe":             "invoicegnp.exe",
		strings.Repeat("x", 200):           strings.Repeat("x", 200),
		strings.Repeat("x", 5000):          strings.Repeat("x", 199) + "…",
		strings.Repeat("é ", 5000):         strings.Repeat("é ", 99) + "é…",
	} {
		m := message()
		m.Subject = subject
		got := written(t, m)
		require.Equal(t, want, got.subject(t))
		requireSafe(t, got.raw)
	}
}

// injections are texts that try to add a header, a body or a command.
var injections = []string{
	"x\r\nBcc: eve@evil.test", "x\nBcc: eve@evil.test", "x\rBcc: eve@evil.test", "\r\n\r\nbody",
	"\r\n.\r\nMAIL FROM:<eve@evil.test>", "Eve\" <eve@evil.test>, \"", "=?utf-8?q?=0D=0ABcc:_eve@evil.test?=",
	"x\u0085Bcc: eve@evil.test", "x\u2028Bcc: eve@evil.test", "\x00",
}

func TestNoTextAddsAHeaderARecipientOrACommand(t *testing.T) {
	t.Parallel()
	plain := open(t, options{})
	require.NoError(t, plain.client().Send(t.Context(), message()))
	headers := read(t, plain.only().text).Header
	for _, text := range injections {
		m := message()
		m.To.Name, m.Subject, m.Text = text, text, text
		f := open(t, options{})
		client := f.client(func(o *mail.Options) { o.From.Name = text })
		require.NoError(t, client.Send(t.Context(), m), "%q", text)
		got := f.only()
		require.Equal(t, "ada@example.com", got.to)
		require.Equal(t, "no-reply@example.com", got.from)
		require.Equal(t, "mail rcpt data", f.seen())
		parsed := read(t, got.text)
		for name := range parsed.Header {
			require.Contains(t, headers, name, "%q", text)
		}
		require.Equal(t, "ada@example.com", parsed.address(t, "To").Address)
		require.Equal(t, "no-reply@example.com", parsed.address(t, "From").Address)
		requireSafe(t, got.text)
	}
}

func TestAnAddressOrIDThatIsNoneIsPermanentAndNeverSent(t *testing.T) {
	t.Parallel()
	f := open(t, options{})
	client := f.client()
	bad := append([]string{
		"", "ada", "ada@", "@example.com", "ada@example.com, eve@evil.test", "Ada <ada@example.com>", "<ada@example.com>",
		" ada@example.com", "ada@example.com (Ada)", "ada @example.com", `"a b"@example.com`,
		"ada@example.com>\r\nRCPT TO:<eve@evil.test",
	}, injections...)
	for _, address := range bad {
		m := message()
		m.To.Address = address
		requireError(t, client.Send(t.Context(), m), mail.Error{Reason: mail.BadMessage}, true)
	}
	for _, id := range append([]string{
		"", ".", "..", "../x", "a/b", `a\b`, ".hidden", "-x", "a b", "a@b", "é", strings.Repeat("a", 129),
	}, injections...) {
		m := message()
		m.ID = id
		requireError(t, client.Send(t.Context(), m), mail.Error{Reason: mail.BadMessage}, true)
	}
	require.Empty(t, f.seen())
}

// A later server that lacks the extension may return a message that requests it.
func TestSMTPUTF8IsAskedForOnlyByAnAddressThatNeedsIt(t *testing.T) {
	t.Parallel()
	for address, needed := range map[string]bool{"ada@example.com": false, "zoë@example.com": true} {
		f := open(t, options{utf8: true})
		m := message()
		m.To.Address, m.Subject = address, "Füßchen"
		require.NoError(t, f.client().Send(t.Context(), m))
		require.Equal(t, needed, f.only().askedUTF8, address)
		require.Equal(t, address, f.only().to)
	}
}
