package commands

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/config"
	"earshot/internal/devstack/statedir"
)

func TestSecretsAreMadeOnce(t *testing.T) {
	t.Parallel()
	d := statedir.Dir(t.TempDir())
	first, err := loadSecrets(d)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(postgresDir(d), 0o755))
	second, err := loadSecrets(d)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Regexp(t, `^dev:[A-Za-z0-9+/]{43}=$`, first[0].Value)
	require.NotContains(t, first[0].Value, first[1].Value)
}

func TestLostSecretsAreNotReplacedWhileThereIsADatabase(t *testing.T) {
	t.Parallel()
	d := statedir.Dir(t.TempDir())
	require.NoError(t, os.Mkdir(postgresDir(d), 0o755))
	_, err := loadSecrets(d)
	require.ErrorContains(t, err, "put it back")
	require.NoFileExists(t, secretsEnv(d))

	half := []byte("EARSHOT_SECRET_KEYS=k:x\n")
	require.NoError(t, os.WriteFile(secretsEnv(d), half, 0o600))
	_, err = loadSecrets(d)
	require.ErrorContains(t, err, "lacks EARSHOT_EMAIL_HASH_KEY")
	text, err := os.ReadFile(secretsEnv(d))
	require.NoError(t, err)
	require.Equal(t, half, text)
}

func TestTheServiceGetsDevelopmentSettingsUnlessTheCallerSaysOtherwise(t *testing.T) {
	t.Parallel()
	u := &up{Options: Options{Dir: "/state", Environ: config.Environ{
		"PATH=/bin", "EARSHOT_RATE_LIMIT=7", "EARSHOT_WEBHOOK_ALLOW_HTTP=false",
		"TEMPORAL_ADDRESS=elsewhere:7233", "TEMPORAL_API_KEY=secret", "DATABASE_URL=postgres://elsewhere",
	}}, secrets: []statedir.Setting{{Name: "EARSHOT_SECRET_KEYS", Value: "dev:x"}}}
	got := u.settings()
	require.Equal(t, []string{
		"PATH=/bin", "EARSHOT_RATE_LIMIT=7", "EARSHOT_WEBHOOK_ALLOW_HTTP=false",
		"EARSHOT_WEBHOOK_ALLOW_CIDRS=127.0.0.0/8,::1/128", "EARSHOT_MAIL_DIR=/state/mail", "EARSHOT_DRAIN_DELAY=0s", "EARSHOT_SECRET_KEYS=dev:x",
	}, got, "and nothing of another database or Temporal")
}

func TestTheBannerSaysWhereEMailsGo(t *testing.T) {
	t.Parallel()
	for want, environ := range map[string]config.Environ{
		"/state/mail  (written there, not sent)": nil,
		"/elsewhere  (written there, not sent)":  {"EARSHOT_MAIL_DIR=/elsewhere"},
		"is not sent: EARSHOT_MAIL_DIR is empty": {"EARSHOT_MAIL_DIR="},
		"is sent through EARSHOT_SMTP_URL":       {"EARSHOT_SMTP_URL=smtp://mail.example.com"},
	} {
		require.Equal(t, want, (&up{Options: Options{Dir: "/state", Environ: environ}}).eMail())
	}
}
