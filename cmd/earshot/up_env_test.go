package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// awkward has characters that are special to a shell or to a careless parser.
const awkward = `a'b "c" $HOME \n # x=1 ;&|` + "`date`"

func TestSettingsComeBackAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dev.env")
	require.NoError(t, writeEnvFile(path, "a comment", []setting{
		{"EARSHOT_API_KEY", "esk_1"}, {"AWKWARD", awkward}, {"EMPTY", ""},
	}))
	values, err := readEnvFile(path)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"EARSHOT_API_KEY": "esk_1", "AWKWARD": awkward, "EMPTY": ""}, values)
}

func TestAShellSourcesTheSettings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dev.env")
	require.NoError(t, writeEnvFile(path, "a comment", []setting{{"AWKWARD", awkward}}))
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `set -a; . "$0"; printenv AWKWARD`, path).Output()
	require.NoError(t, err)
	require.Equal(t, awkward+"\n", string(out))
}

func TestSettingsAreReadableByTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "dev.env")
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	require.NoError(t, writeEnvFile(path, "", []setting{{"A", "1"}}))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left of the way there")
}

func TestSettingsThatAPersonEditedAreUnderstood(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dev.env")
	require.NoError(t, os.WriteFile(path, []byte("\n  # A=0\nexport A=1\nB=\"two words\"\n C=a\\ b\nnonsense\n"), 0o600))
	values, err := readEnvFile(path)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"A": "1", "B": "two words", "C": "a b"}, values)
}

func TestSettingsThatAreNotThereAreEmpty(t *testing.T) {
	t.Parallel()
	values, err := readEnvFile(filepath.Join(t.TempDir(), "dev.env"))
	require.NoError(t, err)
	require.Empty(t, values)
}

func TestSecretsAreMadeOnce(t *testing.T) {
	t.Parallel()
	d := stateDir(t.TempDir())
	first, err := loadSecrets(d)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(d.postgres(), 0o755))
	second, err := loadSecrets(d)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Regexp(t, `^dev:[A-Za-z0-9+/]{43}=$`, first[0].value)
	require.NotContains(t, first[0].value, first[1].value)
}

func TestLostSecretsAreNotReplacedWhileThereIsADatabase(t *testing.T) {
	t.Parallel()
	d := stateDir(t.TempDir())
	require.NoError(t, os.Mkdir(d.postgres(), 0o755))
	_, err := loadSecrets(d)
	require.ErrorContains(t, err, "put it back")
	require.NoFileExists(t, d.secretsEnv())

	half := []byte("EARSHOT_SECRET_KEYS=k:x\n")
	require.NoError(t, os.WriteFile(d.secretsEnv(), half, 0o600))
	_, err = loadSecrets(d)
	require.ErrorContains(t, err, "lacks EARSHOT_EMAIL_HASH_KEY")
	text, err := os.ReadFile(d.secretsEnv())
	require.NoError(t, err)
	require.Equal(t, half, text)
}

func TestTheServiceGetsDevelopmentSettingsUnlessTheCallerSaysOtherwise(t *testing.T) {
	t.Parallel()
	u := &up{dir: "/state", secrets: []setting{{"EARSHOT_SECRET_KEYS", "dev:x"}}, environ: lookup{
		"PATH=/bin", "EARSHOT_RATE_LIMIT=7", "EARSHOT_WEBHOOK_ALLOW_HTTP=false",
		"TEMPORAL_ADDRESS=elsewhere:7233", "TEMPORAL_API_KEY=secret", "DATABASE_URL=postgres://elsewhere",
	}}
	got := u.settings()
	require.Equal(t, []string{
		"PATH=/bin", "EARSHOT_RATE_LIMIT=7", "EARSHOT_WEBHOOK_ALLOW_HTTP=false",
		"EARSHOT_WEBHOOK_ALLOW_CIDRS=127.0.0.0/8,::1/128", "EARSHOT_MAIL_DIR=/state/mail", "EARSHOT_DRAIN_DELAY=0s", "EARSHOT_SECRET_KEYS=dev:x",
	}, got, "and nothing of another database or Temporal")
}

func TestTheBannerSaysWhereEMailsGo(t *testing.T) {
	t.Parallel()
	for want, environ := range map[string]lookup{
		"/state/mail  (written there, not sent)": nil,
		"/elsewhere  (written there, not sent)":  {"EARSHOT_MAIL_DIR=/elsewhere"},
		"is not sent: EARSHOT_MAIL_DIR is empty": {"EARSHOT_MAIL_DIR="},
		"is sent through EARSHOT_SMTP_URL":       {"EARSHOT_SMTP_URL=smtp://mail.example.com"},
	} {
		require.Equal(t, want, (&up{dir: "/state", environ: environ}).eMail())
	}
}

func TestAWordForTheShellIsQuotedWhereItMustBe(t *testing.T) {
	t.Parallel()
	require.Equal(t, "/tmp/a-b_c.1", shellWord("/tmp/a-b_c.1"))
	require.Equal(t, "'two words'", shellWord("two words"))
	require.Equal(t, "''", shellWord(""))
	require.Equal(t, "'"+strings.ReplaceAll("it's", "'", `'\''`)+"'", shellWord("it's"))
}
