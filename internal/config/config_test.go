package config_test

import (
	"bytes"
	"encoding/base64"
	"log/slog"
	"net/netip"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/config"
)

// key is 32 bytes of text, so that the tests can find it in a log in any encoding.
const key = "thirty-two-bytes-of-secret-text!"

func encoded(key string) string { return base64.StdEncoding.EncodeToString([]byte(key)) }

// needed are the settings without a default.
func needed() []string {
	return []string{
		"DATABASE_URL=postgres://earshot:hunter2@db.example.com:5432/earshot?sslmode=require",
		"EARSHOT_SECRET_KEYS=k1:" + encoded(key),
		"EARSHOT_EMAIL_HASH_KEY=" + encoded(key),
	}
}

// with returns the needed settings and the given ones. The last value of a name counts.
func with(more ...string) []string { return append(needed(), more...) }

func TestThreeSettingsAreEnough(t *testing.T) {
	t.Parallel()
	c, err := config.Load(needed())
	require.NoError(t, err)
	require.Equal(t, config.Config{
		DatabaseURL:      "postgres://earshot:hunter2@db.example.com:5432/earshot?sslmode=require",
		DatabaseMaxConns: 32,
		Listen:           "127.0.0.1:4280",
		DrainDelay:       2 * time.Second,
		DrainTimeout:     20 * time.Second,
		RateLimit:        600,
		SecretKeys:       config.SecretKeys{{ID: "k1", Key: []byte(key)}},
		EmailHashKey:     config.Base64(key),
		ContactCapFree:   1000,
		ContactCapPro:    10_000,
		WebhookCap:       25,
		// Specification, Delivery and retries, rule 2.
		WebhookRetryDelays:   []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour},
		WebhookDisableCounts: config.CountDeliveries, CommentEditWindow: 15 * time.Minute,
		EventFeed:        true,
		Retention:        30 * 24 * time.Hour,
		DeliveryGroupMax: 60,
		MailPerSecond:    10,
		HealthListen:     config.DefaultHealthListen,
		LogLevel:         slog.LevelInfo,
		LogFormat:        "json",
	}, c)
}

func TestEverySettingCanBeSet(t *testing.T) {
	t.Parallel()
	c, err := config.Load(with(
		"EARSHOT_DATABASE_MAX_CONNS=5", "EARSHOT_LISTEN=[::]:80", "EARSHOT_DRAIN_DELAY=1s", "EARSHOT_DRAIN_TIMEOUT=1m",
		"EARSHOT_RATE_LIMIT=1",
		"EARSHOT_SECRET_KEYS=k2:"+encoded(strings.ToUpper(key))+", k1:"+encoded(key),
		"EARSHOT_CONTACT_CAP_FREE=2", "EARSHOT_CONTACT_CAP_PRO=3", "EARSHOT_WEBHOOK_CAP=4",
		"EARSHOT_WEBHOOK_ALLOW_CIDRS=10.0.0.0/8,fd00::/8", "EARSHOT_WEBHOOK_ALLOW_HTTP=true",
		"EARSHOT_TRUSTED_PROXIES=10.1.0.0/16", "EARSHOT_PUBLIC_ORIGIN=https://feedback.example.com",
		"EARSHOT_DISPOSABLE_DOMAINS=mailinator.example",
		"EARSHOT_WEBHOOK_DENY_CIDRS=198.35.26.0/23",
		"EARSHOT_WEBHOOK_RETRY_DELAYS=1s,2s,3s,4s", "EARSHOT_DELIVERY_GROUP_MAX=1", "EARSHOT_WEBHOOK_DISABLE_COUNTS=attempts",
		"EARSHOT_SMTP_URL=smtps://mail.example.com", "EARSHOT_MAIL_FROM=no-reply@example.com", "EARSHOT_MAIL_DIR=/tmp/mail",
		"EARSHOT_MAIL_PER_SECOND=5", "EARSHOT_MAIL_BOUNCE_SECRET="+strings.Repeat("s", 32),
		"EARSHOT_RETENTION=24h", "EARSHOT_HEALTH_LISTEN=:4283", "EARSHOT_METRICS_LISTEN=127.0.0.1:0", "EARSHOT_PROFILES=true", "EARSHOT_WORKER_DEPLOYMENT=earshot", "EARSHOT_WORKER_BUILD_ID=1.2",
		"EARSHOT_LOG_LEVEL=debug", "EARSHOT_LOG_FORMAT=text",
	))
	require.NoError(t, err)
	require.Equal(t, config.SecretKeys{
		{ID: "k2", Key: []byte(strings.ToUpper(key))}, {ID: "k1", Key: []byte(key)},
	}, c.SecretKeys)
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}, c.WebhookAllowCIDRs)
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("198.35.26.0/23")}, c.WebhookDenyCIDRs)
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}, c.WebhookRetryDelays)
	require.Equal(t, slog.LevelDebug, c.LogLevel)
	require.True(t, c.WebhookAllowHTTP)
	fields := reflect.ValueOf(c)
	for i := range fields.NumField() {
		require.False(t, fields.Field(i).IsZero(), fields.Type().Field(i).Name)
	}
}

func TestEveryProblemIsToldAtOnceInPlainWords(t *testing.T) {
	t.Parallel()
	_, err := config.Load([]string{
		"DATABASE_URL=mysql://db.example.com/earshot", "EARSHOT_DATABASE_MAX_CONNS=many", "EARSHOT_LISTEN=nowhere",
		"EARSHOT_DRAIN_TIMEOUT=20", "EARSHOT_RATE_LIMIT=99999999999999999999", "EARSHOT_SECRET_KEYS=none",
		"EARSHOT_EMAIL_HASH_KEY=%", "EARSHOT_CONTACT_CAP_FREE=0", "EARSHOT_CONTACT_CAP_PRO=-1", "EARSHOT_WEBHOOK_CAP=0",
		"EARSHOT_WEBHOOK_ALLOW_CIDRS=10.0.0.0/8,inside", "EARSHOT_WEBHOOK_ALLOW_HTTP=perhaps",
		"EARSHOT_WEBHOOK_RETRY_DELAYS=1s,soon", "EARSHOT_DELIVERY_GROUP_MAX=65",
		"EARSHOT_SMTP_URL=http://", "EARSHOT_LOG_LEVEL=loud", "EARSHOT_LOG_FORMAT=xml",
	})
	require.EqualError(t, err, `settings:
  EARSHOT_DATABASE_MAX_CONNS: is not a whole number, or too large a one (connections per process)
  EARSHOT_DRAIN_TIMEOUT: is not a duration such as 90s or 15m (limit of each part of a stop: requests, starts, workflow tasks, first attempts, later attempts)
  EARSHOT_RATE_LIMIT: is not a whole number, or too large a one (requests per minute and API key, over all processes)
  EARSHOT_SECRET_KEYS: wants id:base64, comma-separated (id:base64 of 32 bytes, comma-separated; the first key seals webhook secrets and URLs, and all keys open them. An id has letters, digits, dots, hyphens and underscores)
  EARSHOT_EMAIL_HASH_KEY: is not base64 (base64 of 32 bytes, for hashes of e-mail addresses; it must never change)
  EARSHOT_WEBHOOK_ALLOW_CIDRS: is not a list of networks such as 10.0.0.0/8,fd00::/8 (inner networks that webhooks may reach, comma-separated)
  EARSHOT_WEBHOOK_ALLOW_HTTP: must be true or false (allow webhook URLs without TLS)
  EARSHOT_WEBHOOK_RETRY_DELAYS: is not a list of durations such as 90s,15m (delays before attempts 2 to 5; shorten them for tests only)
  EARSHOT_SMTP_URL: must begin with smtp://, smtps:// or smtp+plain://; must name a host (mail server: smtp://user:password@host:587, smtps://host:465 or smtp+plain://host:25)
  EARSHOT_LOG_LEVEL: is not a level of the log (debug, info, warn or error)
  DATABASE_URL: is not a postgres:// URL
  EARSHOT_LISTEN: wants host:port
  EARSHOT_MAIL_FROM: is missing; EARSHOT_SMTP_URL needs a sender, such as Earshot <no-reply@example.com>
  EARSHOT_LOG_FORMAT: must be json or text
  EARSHOT_CONTACT_CAP_FREE: must be at least 1
  EARSHOT_CONTACT_CAP_PRO: must be at least 1
  EARSHOT_WEBHOOK_CAP: must be at least 1
  EARSHOT_DELIVERY_GROUP_MAX: must be 1 to 60`)
}

func TestTheErrorForAnEmptyEnvironmentExplainsEveryMissingSetting(t *testing.T) {
	t.Parallel()
	_, err := config.Load(nil)
	require.EqualError(t, err, `settings:
  DATABASE_URL: is missing; set it to a postgres:// URL, or use `+"`make up`"+` for a private database
  EARSHOT_SECRET_KEYS: is missing; make one with: echo "k1:$(openssl rand -base64 32)"
  EARSHOT_EMAIL_HASH_KEY: must be the base64 of 32 bytes; make one with: openssl rand -base64 32`)
}

func TestASettingOutOfItsRangeIsRefused(t *testing.T) {
	t.Parallel()
	for setting, complaint := range map[string]string{
		"DATABASE_URL=host=db user=earshot":                                       "is not a postgres:// URL",
		"DATABASE_URL=postgres://one:5432,two:port/earshot":                       "is not a postgres:// URL",
		"DATABASE_URL=postgres://one,two/earshot?target_session_attrs=standby":    "set target_session_attrs=read-write",
		"EARSHOT_LISTEN=4280":                                                     "wants host:port",
		"EARSHOT_DATABASE_MAX_CONNS=0":                                            "must be at least 1",
		"EARSHOT_RATE_LIMIT=0":                                                    "must be at least 1",
		"EARSHOT_DELIVERY_GROUP_MAX=0":                                            "must be 1 to 60",
		"EARSHOT_RETENTION=1h":                                                    "must be at least 24h",
		"EARSHOT_RETENTION=-24h":                                                  "must be at least 24h",
		"EARSHOT_PUBLIC_ORIGIN=feedback.example.com":                              "wants scheme and host only",
		"EARSHOT_PUBLIC_ORIGIN=https://feedback.example.com/b":                    "wants scheme and host only",
		"EARSHOT_PUBLIC_ORIGIN=ftp://feedback.example.com":                        "wants scheme and host only",
		"EARSHOT_HEALTH_LISTEN=4283":                                              "wants host:port",
		"EARSHOT_METRICS_LISTEN=4282":                                             "wants host:port",
		"EARSHOT_WORKER_DEPLOYMENT=earshot":                                       "set both, or none",
		"EARSHOT_WEBHOOK_RETRY_DELAYS=1s,1s,1s":                                   "wants four durations",
		"EARSHOT_WEBHOOK_RETRY_DELAYS=1s,1s,1s,1s,1s":                             "wants four durations",
		"EARSHOT_EMAIL_HASH_KEY=" + encoded(key[:31]):                             "must be the base64 of 32 bytes",
		"EARSHOT_SECRET_KEYS=k1:" + encoded(key[:16]):                             "key number 1 must have 32 bytes",
		"EARSHOT_SECRET_KEYS=" + strings.Repeat("k", 65) + ":" + encoded(key):     "an id of at most 64 letters",
		"EARSHOT_SECRET_KEYS=k 1:" + encoded(key):                                 "an id of at most 64 letters",
		"EARSHOT_SECRET_KEYS=k1:" + encoded(key) + ",k2":                          "wants id:base64",
		"EARSHOT_SECRET_KEYS=k1:" + encoded(key) + ",:" + encoded(key):            "wants id:base64",
		"EARSHOT_SECRET_KEYS=k1:" + encoded(key) + ",k2:?":                        "key number 2 is not base64",
		"EARSHOT_SECRET_KEYS=k1:" + encoded(key) + ",k1:" + encoded("x"+key[:31]): "key number 2 has the id of another",
		"EARSHOT_MAIL_PER_SECOND=0":                                               "must be 1 to 1000",
		"EARSHOT_MAIL_PER_SECOND=1001":                                            "must be 1 to 1000",
		"EARSHOT_MAIL_BOUNCE_SECRET=short":                                        "must have at least 32 characters",
		"EARSHOT_MAIL_FROM=Earshot":                                               "is not an e-mail address",
	} {
		name, _, _ := strings.Cut(setting, "=")
		_, err := config.Load(with(setting))
		require.ErrorContains(t, err, name+": ", setting)
		require.ErrorContains(t, err, complaint, setting)
		require.Equal(t, 1, strings.Count(err.Error(), "\n"), "one problem, told once: %v", err)
	}
}

func TestNoComplaintShowsASecret(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{
		"DATABASE_URL=mysql://earshot:hunter2@db.example.com/earshot",
		"DATABASE_URL=postgres://earshot:hunter2@db.example.com:port/earshot",
		"DATABASE_URL=postgres://earshot:hunter2@one:5432,two:port/earshot",
		"DATABASE_URL=postgres://earshot:hunter2@one:5432,two/earshot?target_session_attrs=standby",
		// The id and the key are swapped; k100 is valid base64 too.
		"EARSHOT_SECRET_KEYS=" + encoded(key) + ":k1",
		"EARSHOT_SECRET_KEYS=" + encoded(key) + ":k100",
		"EARSHOT_SECRET_KEYS=" + encoded(key),
		"EARSHOT_SECRET_KEYS=k1:" + encoded(key) + "?",
		"EARSHOT_EMAIL_HASH_KEY=" + encoded(key) + "?",
		"EARSHOT_EMAIL_HASH_KEY=" + encoded(key+key),
		"EARSHOT_SMTP_URL=smtp://mailer:hunter2@mail.example.com",
		"EARSHOT_SMTP_URL=smtp://mailer:/hunter2@mail.example.com",
		"EARSHOT_SMTP_URL=smtp://mailer:hunter2%@mail.example.com",
		"EARSHOT_SMTP_URL=smtp://mailer:hunter2@mail.example.com:port",
		"EARSHOT_SMTP_URL=smtp+plain://mailer:hunter2@mail.example.com",
		"EARSHOT_SMTP_URL=hunter2",
	} {
		_, err := config.Load(with(setting))
		require.Error(t, err, setting)
		requireNoSecret(t, err.Error())
	}
}

// requireNoSecret searches for the secrets of this file in every form that careless output could
// take.
func requireNoSecret(t *testing.T, text string) {
	t.Helper()
	numbers := regexp.MustCompile(`\[?116[ ,]+104[ ,]+105`) // "thi", as bytes in decimal
	require.NotContains(t, text, "hunter2")
	require.NotContains(t, text, key[:8])
	require.NotContains(t, text, encoded(key)[:8])
	require.NotRegexp(t, numbers, text)
}

func TestTheLogShowsEverySettingButNoSecret(t *testing.T) {
	t.Parallel()
	c, err := config.Load(with(
		"DATABASE_URL=postgres://earshot:hunter2@db.example.com/earshot?sslmode=require&password=hunter2&sslpassword=hunter2",
		"EARSHOT_WEBHOOK_ALLOW_CIDRS=10.0.0.0/8",
		"EARSHOT_SMTP_URL=smtp://mailer:hunter2@mail.example.com", "EARSHOT_MAIL_FROM=Earshot <no-reply@example.com>",
	))
	require.NoError(t, err)
	for _, form := range []func(*bytes.Buffer) slog.Handler{
		func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
	} {
		var out bytes.Buffer
		slog.New(form(&out)).Info("settings", "config", c)
		requireNoSecret(t, out.String())
		for _, shown := range []string{"db.example.com/earshot", "sslmode=require", "127.0.0.1:4280", "30s 2m0s 10m0s 1h0m0s", "10.0.0.0/8", "mail.example.com:587"} {
			require.Contains(t, out.String(), shown)
		}
		require.NotContains(t, out.String(), "mailer")
		require.NotContains(t, out.String(), "no-reply")
		settings := reflect.TypeFor[config.Config]()
		for i := range settings.NumField() {
			require.Contains(t, out.String(), settings.Field(i).Tag.Get("env"))
		}
	}
}

func TestADatabaseMayHaveSeveralHosts(t *testing.T) {
	t.Parallel()
	for _, hosts := range []string{
		"one.example.com,two.example.com", "one.example.com:5432,two.example.com", "one.example.com,two.example.com:5433",
		"10.0.0.1:5432,10.0.0.2:5433,10.0.0.3:5434", "[::1]:5432,[::2]:5433",
	} {
		url := "postgres://earshot:hunter2@" + hosts + "/earshot?target_session_attrs=read-write"
		c, err := config.Load(with("DATABASE_URL=" + url + "&password=hunter2"))
		require.NoError(t, err, hosts)
		var out bytes.Buffer
		slog.New(slog.NewJSONHandler(&out, nil)).Info("settings", "config", c)
		requireNoSecret(t, out.String())
		require.Contains(t, out.String(), "@"+hosts+"/earshot?", "an operator sees where the process connects to")
	}
}

// Every setting has a variable and a line of help. It has a mask if its name suggests a secret.
func TestEverySettingIsNamedExplainedAndMaskedWhereItMustBe(t *testing.T) {
	t.Parallel()
	secret := regexp.MustCompile(`KEY|SECRET|PASSWORD|TOKEN|URL|DSN`)
	settings := reflect.TypeFor[config.Config]()
	for i := range settings.NumField() {
		f := settings.Field(i)
		require.NotEmpty(t, f.Tag.Get("env"), f.Name)
		require.NotEmpty(t, f.Tag.Get("help"), f.Name)
		if secret.MatchString(f.Tag.Get("env")) {
			require.NotEmpty(t, f.Tag.Get("mask"), f.Name)
		}
	}
}

func TestAnOperatorWhoRotatesKeysNeedsNoOtherSetting(t *testing.T) {
	t.Parallel()
	keys, err := config.LoadSecretKeys([]string{"EARSHOT_SECRET_KEYS=k2:" + encoded(key) + ",k1:" + encoded(key)})
	require.NoError(t, err)
	require.Equal(t, config.SecretKeys{{ID: "k2", Key: []byte(key)}, {ID: "k1", Key: []byte(key)}}, keys)
	for setting, complaint := range map[string]string{
		"":        "is missing",
		"k1":      "wants id:base64",
		"k1:a2V5": "key number 1 must have 32 bytes",
	} {
		_, err := config.LoadSecretKeys([]string{"EARSHOT_SECRET_KEYS=" + setting})
		require.ErrorContains(t, err, "EARSHOT_SECRET_KEYS")
		require.ErrorContains(t, err, complaint)
		require.NotContains(t, err.Error(), "a2V5")
	}
}
