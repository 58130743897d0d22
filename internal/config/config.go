// Package config reads the settings from the environment and from files named there. It reports all
// problems together and contains the table of settings.
//
// Temporal's own settings (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TLS, API key, …) are only listed
// in the table. Temporal's envconfig package reads them.
package config

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/go-faster/errors"
)

// DefaultHealthListen is replaced by a free port if it is taken, so that several workers on one
// machine need no setting.
const DefaultHealthListen = "127.0.0.1:4283"

// These variables are read or set by commands that don't load the other settings.
const (
	DatabaseURL   = "DATABASE_URL"
	Listen        = "EARSHOT_LISTEN"
	HealthListen  = "EARSHOT_HEALTH_LISTEN"
	MetricsListen = "EARSHOT_METRICS_LISTEN"
	SMTPURL       = "EARSHOT_SMTP_URL"
	MailDir       = "EARSHOT_MAIL_DIR"
)

// Config has all settings of the service. Load fills it; the zero value is not usable.
type Config struct {
	DatabaseURL      string `env:"DATABASE_URL" help:"postgres:// URL of the database" mask:"url" required:"true"`
	DatabaseMaxConns int32  `env:"EARSHOT_DATABASE_MAX_CONNS" envDefault:"32" help:"connections per process"`

	Listen       string        `env:"EARSHOT_LISTEN" envDefault:"127.0.0.1:4280" help:"address of the API"`
	DrainDelay   time.Duration `env:"EARSHOT_DRAIN_DELAY" envDefault:"2s" help:"time for which a stopping API still answers while /readyz fails; longer than two checks of the load balancer"`
	DrainTimeout time.Duration `env:"EARSHOT_DRAIN_TIMEOUT" envDefault:"20s" help:"limit of each part of a stop: requests, starts, workflow tasks, first attempts, later attempts"`
	RateLimit    int           `env:"EARSHOT_RATE_LIMIT" envDefault:"600" help:"requests per minute and API key, over all processes"`

	PublicOrigin string `env:"EARSHOT_PUBLIC_ORIGIN" help:"public address for links, feeds and sitemaps, for example https://feedback.example.com; without it, visitors can only act from this machine"`

	DisposableDomains Domains `env:"EARSHOT_DISPOSABLE_DOMAINS" help:"domains of disposable e-mail addresses, with their subdomains, that cannot vote, post or comment; separated by commas or lines"`

	TrustedProxies []netip.Prefix `env:"EARSHOT_TRUSTED_PROXIES" help:"networks of proxies whose X-Forwarded-For is trusted, comma-separated"`

	SecretKeys   SecretKeys `env:"EARSHOT_SECRET_KEYS" help:"id:base64 of 32 bytes, comma-separated; the first key seals webhook secrets and URLs, and all keys open them. An id has letters, digits, dots, hyphens and underscores" mask:"all" required:"true"`
	EmailHashKey Base64     `env:"EARSHOT_EMAIL_HASH_KEY" help:"base64 of 32 bytes, for hashes of e-mail addresses; it must never change" mask:"all" required:"true"`

	ContactCapFree       int                  `env:"EARSHOT_CONTACT_CAP_FREE" envDefault:"1000" help:"contacts of an organization on the free plan"`
	ContactCapPro        int                  `env:"EARSHOT_CONTACT_CAP_PRO" envDefault:"10000" help:"contacts of an organization on the pro plan"`
	WebhookCap           int                  `env:"EARSHOT_WEBHOOK_CAP" envDefault:"25" help:"webhooks of one organization"`
	WebhookAllowCIDRs    []netip.Prefix       `env:"EARSHOT_WEBHOOK_ALLOW_CIDRS" help:"inner networks that webhooks may reach, comma-separated"`
	WebhookDenyCIDRs     []netip.Prefix       `env:"EARSHOT_WEBHOOK_DENY_CIDRS" help:"further networks that webhooks may never reach, comma-separated"`
	WebhookAllowHTTP     bool                 `env:"EARSHOT_WEBHOOK_ALLOW_HTTP" envDefault:"false" help:"allow webhook URLs without TLS"`
	WebhookRetryDelays   []time.Duration      `env:"EARSHOT_WEBHOOK_RETRY_DELAYS" envDefault:"30s,2m,10m,1h" help:"delays before attempts 2 to 5; shorten them for tests only"`
	WebhookDisableCounts WebhookDisableCounts `env:"EARSHOT_WEBHOOK_DISABLE_COUNTS" envDefault:"deliveries" help:"the failures of which 50 in a row disable a webhook: deliveries that failed for good, or attempts"`
	CommentEditWindow    time.Duration        `env:"EARSHOT_COMMENT_EDIT_WINDOW" envDefault:"15m" help:"time for edits of a comment; 0 is no limit"`
	EventFeed            bool                 `env:"EARSHOT_EVENT_FEED" envDefault:"true" help:"keep events that no webhook subscribes to, and serve GET /v1/events"`
	Retention            time.Duration        `env:"EARSHOT_RETENTION" envDefault:"720h" help:"age limit of events, deliveries and attempts, at least 24h; 0 is no limit"`
	DeliveryGroupMax     int                  `env:"EARSHOT_DELIVERY_GROUP_MAX" envDefault:"60" help:"deliveries per workflow; 1 turns groups off"`

	SMTP     SMTP        `env:"EARSHOT_SMTP_URL" help:"mail server: smtp://user:password@host:587, smtps://host:465 or smtp+plain://host:25" mask:"url"`
	MailFrom MailAddress `env:"EARSHOT_MAIL_FROM" help:"sender of e-mails, for example Earshot <no-reply@example.com>; required with a mail server"`
	// MailPerSecond is the limit of all processes together.
	MailPerSecond    int    `env:"EARSHOT_MAIL_PER_SECOND" envDefault:"10" help:"e-mails to end-users per second, over all processes"`
	MailBounceSecret string `env:"EARSHOT_MAIL_BOUNCE_SECRET" help:"secret for reports of bounced e-mails, at least 32 characters; empty refuses reports" mask:"all"`
	MailDir          string `env:"EARSHOT_MAIL_DIR" help:"directory for e-mails without a mail server, for development"`

	WorkerDeployment string `env:"EARSHOT_WORKER_DEPLOYMENT" help:"name of the worker deployment in Temporal; empty is no versioning, and then the build id is empty too"`
	WorkerBuildID    string `env:"EARSHOT_WORKER_BUILD_ID" help:"version of this program within the worker deployment"`
	HealthListen     string `env:"EARSHOT_HEALTH_LISTEN" envDefault:"127.0.0.1:4283" help:"address of /healthz and /readyz of a worker without the API"`
	MetricsListen    string `env:"EARSHOT_METRICS_LISTEN" help:"address of the metrics; empty is off"`
	Profiles         bool   `env:"EARSHOT_PROFILES" envDefault:"false" help:"serve Go's profiles at /debug/pprof beside the metrics"`

	LogLevel  slog.Level `env:"EARSHOT_LOG_LEVEL" envDefault:"info" help:"debug, info, warn or error"`
	LogFormat string     `env:"EARSHOT_LOG_FORMAT" envDefault:"json" help:"json or text"`
}

// WebhookDisableCounts selects the failures that count: 50 of them in a row disable a webhook.
type WebhookDisableCounts string

// The values of WebhookDisableCounts.
const (
	CountDeliveries WebhookDisableCounts = "deliveries"
	CountAttempts   WebhookDisableCounts = "attempts"
)

// hashKeySize is the size of EARSHOT_EMAIL_HASH_KEY in bytes.
const hashKeySize = 32

// Base64 is a byte slice that the environment encodes as base64.
type Base64 []byte

// UnmarshalText decodes base64.
func (b *Base64) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return errors.New("is not base64")
	}
	*b = raw
	return nil
}

// SecretKey is a key that seals webhook secrets.
type SecretKey struct {
	ID  string
	Key []byte
}

// SecretKeys lists the keys. The first one seals new secrets.
type SecretKeys []SecretKey

// UnmarshalText reads id:base64,id:base64.
func (k *SecretKeys) UnmarshalText(text []byte) error {
	for i, part := range strings.Split(string(text), ",") {
		id, encoded, ok := strings.Cut(strings.TrimSpace(part), ":")
		if !ok || id == "" {
			return errors.New("wants id:base64, comma-separated")
		}
		var key Base64
		if err := key.UnmarshalText([]byte(encoded)); err != nil {
			// The message names the position and not the id, because the key may stand in place of
			// the id.
			return errors.Errorf("key number %d %v", i+1, err)
		}
		*k = append(*k, SecretKey{ID: id, Key: key})
	}
	return nil
}

// LoadSecretKeys reads only EARSHOT_SECRET_KEYS. The command that rotates keys needs only this
// setting and the database's URL.
func LoadSecretKeys(environ []string) (SecretKeys, error) {
	const name = "EARSHOT_SECRET_KEYS"
	var keys SecretKeys
	text, err := Lookup(environ, name)
	if err != nil {
		return nil, err
	}
	if text == "" {
		return nil, errors.New(name + " is missing: set it to the value that the service uses")
	}
	if err := keys.UnmarshalText([]byte(text)); err != nil {
		return nil, errors.Errorf("%s: %v", name, err)
	}
	if found := keys.problems(); len(found) > 0 {
		return nil, errors.New(name + ": " + strings.Join(found, "; "))
	}
	return keys, nil
}

// LoadEmailHashKey is LoadSecretKeys for EARSHOT_EMAIL_HASH_KEY.
func LoadEmailHashKey(environ []string) (Base64, error) {
	const name = "EARSHOT_EMAIL_HASH_KEY"
	text, err := Lookup(environ, name)
	if err != nil {
		return nil, err
	}
	var key Base64
	if err := key.UnmarshalText([]byte(text)); err != nil || len(key) != hashKeySize {
		return nil, errors.New(name + " is missing, or isn't the base64 of 32 bytes: set it to the value that the service uses")
	}
	return key, nil
}

// Load reads the settings from KEY=value pairs as os.Environ returns them. Its error lists every
// problem on its own line in plain words.
func Load(environ []string) (Config, error) {
	var c Config
	values, problems := read(environ, names()...)
	err := env.ParseWithOptions(&c, env.Options{Environment: values})
	var all env.AggregateError
	if errors.As(err, &all) {
		for _, e := range all.Errors {
			problems = append(problems, inPlainWords(e))
		}
	} else if err != nil {
		problems = append(problems, err.Error())
	}
	problems = append(problems, c.problems(strings.Join(problems, "\n"))...)
	if len(problems) > 0 {
		return Config{}, errors.New("settings:\n  " + strings.Join(problems, "\n  "))
	}
	return c, nil
}

// inPlainWords rewrites an error of the env package. That error names the Go field and strconv; the
// new one names the variable and describes valid values.
func inPlainWords(err error) string {
	var parse env.ParseError
	if !errors.As(err, &parse) {
		return err.Error()
	}
	f, _ := reflect.TypeFor[Config]().FieldByName(parse.Name)
	return fmt.Sprintf("%s: %s (%s)", f.Tag.Get("env"), wanted(f.Type, parse.Err), f.Tag.Get("help"))
}

// wanted describes the problem of a value by its type. Errors of our own types are descriptive
// already.
func wanted(t reflect.Type, err error) string {
	switch t {
	case reflect.TypeFor[int](), reflect.TypeFor[int32]():
		return "is not a whole number, or too large a one"
	case reflect.TypeFor[bool]():
		return "must be true or false"
	case reflect.TypeFor[time.Duration]():
		return "is not a duration such as 90s or 15m"
	case reflect.TypeFor[[]time.Duration]():
		return "is not a list of durations such as 90s,15m"
	case reflect.TypeFor[[]netip.Prefix]():
		return "is not a list of networks such as 10.0.0.0/8,fd00::/8"
	case reflect.TypeFor[slog.Level]():
		return "is not a level of the log"
	default:
		return err.Error()
	}
}

// LogValue lists every setting under its variable's name, with secrets masked.
func (c Config) LogValue() slog.Value {
	var attrs []slog.Attr
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		attrs = append(attrs, slog.String(f.Tag.Get("env"), shown(f.Tag.Get("mask"), v.Field(i).Interface())))
	}
	return slog.GroupValue(attrs...)
}

func shown(mask string, value any) string {
	switch mask {
	case "all":
		return "***"
	case "url":
		u, err := parseURL(fmt.Sprint(value))
		if err != nil {
			return "***"
		}
		// Postgres also accepts passwords as URL parameters.
		q := u.Query()
		for _, name := range []string{"password", "sslpassword"} {
			if q.Has(name) {
				q.Set(name, "xxxxx")
			}
		}
		u.RawQuery = q.Encode()
		return u.Redacted()
	default:
		return fmt.Sprint(value)
	}
}
