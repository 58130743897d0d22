package mail_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/mail"
)

func TestTheDevelopmentMailboxIsReadableByItsOwnerOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "deep", "mail")
	var logs bytes.Buffer
	require.NoError(t, mail.New(mail.Options{Dir: dir, Log: logTo(&logs)}).Send(t.Context(), message()))
	file := filepath.Join(dir, "whk_1-usr_1.eml")
	for path, mode := range map[string]fs.FileMode{dir: fs.ModeDir | 0o700, file: 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), path)
	}
	require.Contains(t, logs.String(), `"msg":"e-mail written, not sent","messageId":"whk_1-usr_1","file":"`+file+`"`)
	require.NotContains(t, logs.String(), "@")
}

func TestAMessageThatIsSentAgainReplacesItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := mail.New(mail.Options{Dir: dir, Log: logTo(t.Output())})
	for _, text := range []string{"first", "second"} {
		again := message()
		again.Text = text
		require.NoError(t, m.Send(t.Context(), again))
	}
	other := message()
	other.ID = "whk_1-usr_2"
	require.NoError(t, m.Send(t.Context(), other))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "and nothing is left of the way there")
	raw, err := os.ReadFile(filepath.Join(dir, "whk_1-usr_1.eml"))
	require.NoError(t, err)
	require.Equal(t, "second", read(t, string(raw)).text)
}

func TestAMailboxThatTakesNothingMayDoSoLater(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	var logs bytes.Buffer
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	err := mail.New(mail.Options{Dir: file, Log: logTo(&logs)}).Send(t.Context(), message())
	requireError(t, err, mail.Error{Reason: mail.MailboxFailed}, false)
	require.NotContains(t, err.Error(), file)
	require.Contains(t, logs.String(), "not a directory", "the operator sees why")
}

func TestAMailServerGoesBeforeTheMailbox(t *testing.T) {
	t.Parallel()
	f, dir := open(t, options{}), t.TempDir()
	var logs bytes.Buffer
	m := f.client(func(o *mail.Options) { o.Dir, o.Log = dir, logTo(&logs) })
	require.NoError(t, m.Send(t.Context(), message()))
	f.only()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
	require.Contains(t, logs.String(), `"msg":"e-mail sent","messageId":"whk_1-usr_1"`)
	require.NotContains(t, logs.String(), "@")
}

func TestWithoutSettingsAMessageIsAWarningAndNotTriedAgain(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	err := mail.New(mail.Options{Log: logTo(&logs)}).Send(t.Context(), message())
	require.ErrorIs(t, err, mail.ErrNotConfigured)
	require.True(t, mail.Permanent(err))
	require.Equal(t, 1, strings.Count(logs.String(), "\n"))
	require.Contains(t, logs.String(), `"level":"WARN"`)
	require.Contains(t, logs.String(), "set EARSHOT_SMTP_URL and EARSHOT_MAIL_FROM")
	require.NotContains(t, logs.String(), "@")
}
