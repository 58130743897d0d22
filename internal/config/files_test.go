package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/config"
	"earshot/webhook"
)

// file writes a text to a file of the test and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "value")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestEverySettingCanStandInAFile(t *testing.T) {
	t.Parallel()
	set := map[string]string{
		"DATABASE_URL": "postgres://earshot:hunter2@db.example.com/earshot", "EARSHOT_SECRET_KEYS": "k1:" + encoded(key),
		"EARSHOT_EMAIL_HASH_KEY": encoded(key), "EARSHOT_SMTP_URL": "smtps://mail.example.com",
		"EARSHOT_MAIL_FROM": "no-reply@example.com", "EARSHOT_MAIL_BOUNCE_SECRET": strings.Repeat("s", 32), "EARSHOT_MAIL_DIR": "/tmp/mail",
		"EARSHOT_TRUSTED_PROXIES": "10.0.0.0/8", "EARSHOT_PUBLIC_ORIGIN": "https://feedback.example.com",
		"EARSHOT_DISPOSABLE_DOMAINS": "mailinator.example", "EARSHOT_WEBHOOK_ALLOW_CIDRS": "10.0.0.0/8", "EARSHOT_WEBHOOK_DENY_CIDRS": "198.35.26.0/23", "EARSHOT_METRICS_LISTEN": ":4282",
		"EARSHOT_WORKER_DEPLOYMENT": "earshot", "EARSHOT_WORKER_BUILD_ID": "1.2",
	}
	var direct, fromFiles []string
	for _, s := range config.Settings() {
		value, given := set[s.Name]
		if s.Temporal {
			continue
		} else if !given {
			value = s.Default
		}
		require.NotEmpty(t, value, s.Name)
		direct = append(direct, s.Name+"="+value)
		// Endings of an editor, of echo, and of neither.
		fromFiles = append(fromFiles, s.Name+"_FILE="+file(t, value+[]string{"\n", "", "\r\n"}[len(direct)%3]))
	}
	want, err := config.Load(direct)
	require.NoError(t, err)
	got, err := config.Load(fromFiles)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestASettingThatIsSetTwiceOrCannotBeReadIsListedWithTheOthers(t *testing.T) {
	t.Parallel()
	_, err := config.Load(with(
		"DATABASE_URL_FILE="+file(t, "postgres://earshot:hunter2@db.example.com/earshot"),
		"EARSHOT_SECRET_KEYS=", "EARSHOT_SECRET_KEYS_FILE=/nowhere/keys", "EARSHOT_RATE_LIMIT_FILE="+file(t, "many"),
		"EARSHOT_EMAIL_HASH_KEY=", "EARSHOT_EMAIL_HASH_KEY_FILE="+file(t, "hunter2\n"),
	))
	require.EqualError(t, err, `settings:
  DATABASE_URL: is set twice, by itself and by DATABASE_URL_FILE: leave one of them out
  EARSHOT_SECRET_KEYS: EARSHOT_SECRET_KEYS_FILE names a file that can't be read: open /nowhere/keys: no such file or directory
  EARSHOT_RATE_LIMIT: is not a whole number, or too large a one (requests per minute and API key, over all processes)
  EARSHOT_EMAIL_HASH_KEY: is not base64 (base64 of 32 bytes, for hashes of e-mail addresses; it must never change)`)
}

func TestAnEmptyOptionalSettingCountsAsUnset(t *testing.T) {
	t.Parallel()
	var empty []string
	for _, s := range config.Settings() {
		if !s.Required {
			empty = append(empty, s.Name+"=", s.Name+"_FILE=")
		}
	}
	want, err := config.Load(needed())
	require.NoError(t, err)
	got, err := config.Load(with(append(empty, "EARSHOT_SMTP_URL_FILE="+file(t, "\n"))...))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestACommandReadsOneSettingAsTheServiceDoes(t *testing.T) {
	t.Parallel()
	url, err := config.Lookup([]string{"DATABASE_URL_FILE=" + file(t, "postgres://db.example.com\n")}, config.DatabaseURL)
	require.NoError(t, err)
	require.Equal(t, "postgres://db.example.com", url)
	address, err := config.Lookup(nil, "EARSHOT_LISTEN")
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:4280", address)
	_, err = config.Lookup([]string{"DATABASE_URL_FILE=/nowhere/url"}, config.DatabaseURL)
	require.ErrorContains(t, err, "DATABASE_URL: DATABASE_URL_FILE names a file that can't be read")

	keys, err := config.LoadSecretKeys([]string{"EARSHOT_SECRET_KEYS_FILE=" + file(t, "k1:"+encoded(key)+"\n")})
	require.NoError(t, err)
	require.Equal(t, config.SecretKeys{{ID: "k1", Key: []byte(key)}}, keys)
	_, err = config.LoadSecretKeys([]string{"EARSHOT_SECRET_KEYS_FILE=/nowhere/keys"})
	require.ErrorContains(t, err, "EARSHOT_SECRET_KEYS: EARSHOT_SECRET_KEYS_FILE names a file that can't be read")
}

func TestTheTableOfSettingsSaysWhichAreRequiredAndWhichAreSecret(t *testing.T) {
	t.Parallel()
	required, secret := []string{}, []string{}
	for _, s := range config.Settings() {
		if s.Required {
			required = append(required, s.Name)
		}
		if s.Secret {
			secret = append(secret, s.Name)
		}
	}
	require.Equal(t, []string{"DATABASE_URL", "EARSHOT_SECRET_KEYS", "EARSHOT_EMAIL_HASH_KEY"}, required)
	require.Equal(t, []string{"DATABASE_URL", "EARSHOT_SECRET_KEYS", "EARSHOT_EMAIL_HASH_KEY", "EARSHOT_SMTP_URL", "EARSHOT_MAIL_BOUNCE_SECRET", "TEMPORAL_API_KEY"}, secret)
}

func TestTheRetryScheduleIsTheOneThatReceiversAreToldOf(t *testing.T) {
	t.Parallel()
	c, err := config.Load(needed())
	require.NoError(t, err)
	for i, delay := range c.WebhookRetryDelays {
		told, ok := webhook.RetryDelay(i + 1)
		require.True(t, ok)
		require.Equal(t, told, delay)
	}
}
