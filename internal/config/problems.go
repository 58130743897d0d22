package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"earshot/webhook"
)

// problems checks rules that a type can't express. It skips variables with a known problem, so that
// each problem is reported once.
func (c *Config) problems(known string) []string {
	found := complaints{known: known}
	c.addressProblems(&found)
	c.workerProblems(&found)
	c.secretProblems(&found)
	c.mailProblems(&found)
	c.endUserMailProblems(&found)
	c.webhookProblems(&found)
	c.limitProblems(&found)
	return found.all
}

type complaints struct {
	known string
	all   []string
}

func (c *complaints) about(name, format string, args ...any) {
	if !strings.Contains(c.known, name+":") {
		c.all = append(c.all, name+": "+fmt.Sprintf(format, args...))
	}
}

func (c *Config) addressProblems(found *complaints) {
	if err := databaseProblem(c.DatabaseURL); err != nil {
		found.about("DATABASE_URL", "%v", err)
	}
	for _, listen := range [][2]string{
		{"EARSHOT_LISTEN", c.Listen}, {"EARSHOT_HEALTH_LISTEN", c.HealthListen}, {"EARSHOT_METRICS_LISTEN", cmp.Or(c.MetricsListen, ":")},
	} {
		if _, _, err := net.SplitHostPort(listen[1]); err != nil {
			found.about(listen[0], "wants host:port")
		}
	}
	if u, err := url.Parse(c.PublicOrigin); c.PublicOrigin != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
		u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "") {
		found.about("EARSHOT_PUBLIC_ORIGIN", "wants scheme and host only, such as https://feedback.example.com")
	}
	if c.Profiles && c.MetricsListen == "" {
		found.about("EARSHOT_PROFILES", "needs EARSHOT_METRICS_LISTEN, where profiles are served")
	}
}

func (c *Config) workerProblems(found *complaints) {
	if (c.WorkerDeployment == "") != (c.WorkerBuildID == "") {
		found.about("EARSHOT_WORKER_DEPLOYMENT", "goes together with EARSHOT_WORKER_BUILD_ID: set both, or none")
	}
	// Temporal joins the two as deployment.build.
	if strings.ContainsAny(c.WorkerDeployment, ".:") {
		found.about("EARSHOT_WORKER_DEPLOYMENT", "must not have a dot or a colon")
	}
}

func (c *Config) secretProblems(found *complaints) {
	if len(c.SecretKeys) == 0 {
		found.about("EARSHOT_SECRET_KEYS", "is missing; make one with: echo \"k1:$(openssl rand -base64 32)\"")
	}
	for _, complaint := range c.SecretKeys.problems() {
		found.about("EARSHOT_SECRET_KEYS", "%s", complaint)
	}
	if len(c.EmailHashKey) != hashKeySize {
		found.about("EARSHOT_EMAIL_HASH_KEY", "must be the base64 of 32 bytes; make one with: openssl rand -base64 32")
	}
}

func (c *Config) mailProblems(found *complaints) {
	if (c.SMTP != SMTP{} || strings.Contains(found.known, "EARSHOT_SMTP_URL:")) && c.MailFrom.Address == "" {
		found.about("EARSHOT_MAIL_FROM", "is missing; EARSHOT_SMTP_URL needs a sender, such as Earshot <no-reply@example.com>")
	}
}

func (c *Config) endUserMailProblems(found *complaints) {
	if c.MailPerSecond < 1 || c.MailPerSecond > 1000 {
		found.about("EARSHOT_MAIL_PER_SECOND", "must be 1 to 1000")
	}
	if c.MailBounceSecret != "" && len(c.MailBounceSecret) < 32 {
		found.about("EARSHOT_MAIL_BOUNCE_SECRET", "must have at least 32 characters; make one with: openssl rand -hex 32")
	}
}

func (c *Config) webhookProblems(found *complaints) {
	if w := c.WebhookDisableCounts; w != CountDeliveries && w != CountAttempts {
		found.about("EARSHOT_WEBHOOK_DISABLE_COUNTS", "must be deliveries or attempts")
	}
	// A delivery takes more than an hour to fail for good. After that, people need time to notice
	// and to replay it.
	if c.Retention != 0 && c.Retention < 24*time.Hour {
		found.about("EARSHOT_RETENTION", "must be at least 24h, or 0 to keep everything")
	}
	if len(c.WebhookRetryDelays) != webhook.MaxAttempts-1 || slices.Min(c.WebhookRetryDelays) < 0 {
		found.about("EARSHOT_WEBHOOK_RETRY_DELAYS", "wants four durations, none of them negative")
	}
}

func (c *Config) limitProblems(found *complaints) {
	if c.LogFormat != "json" && c.LogFormat != "text" {
		found.about("EARSHOT_LOG_FORMAT", "must be json or text")
	}
	if c.DrainDelay < 0 {
		found.about("EARSHOT_DRAIN_DELAY", "must not be negative")
	}
	if c.DrainTimeout < 0 {
		found.about("EARSHOT_DRAIN_TIMEOUT", "must not be negative")
	}
	for _, count := range []struct {
		name  string
		value int
	}{
		{"EARSHOT_DATABASE_MAX_CONNS", int(c.DatabaseMaxConns)}, {"EARSHOT_RATE_LIMIT", c.RateLimit},
		{"EARSHOT_CONTACT_CAP_FREE", c.ContactCapFree}, {"EARSHOT_CONTACT_CAP_PRO", c.ContactCapPro},
		{"EARSHOT_WEBHOOK_CAP", c.WebhookCap},
	} {
		if count.value < 1 {
			found.about(count.name, "must be at least 1")
		}
	}
	// A workflow is found by the ids of its deliveries. Temporal allows 2,048 bytes in one search
	// attribute: 62 ids of 30 characters and separators.
	if c.DeliveryGroupMax < 1 || c.DeliveryGroupMax > 60 {
		found.about("EARSHOT_DELIVERY_GROUP_MAX", "must be 1 to 60")
	}
}

// problems names keys by their position, because an id may be a key by mistake.
func (k SecretKeys) problems() (found []string) {
	named := map[string]bool{}
	for i, key := range k {
		// An older key may have any id, because the id is stored in everything that it sealed.
		if len(key.Key) != 32 || len(key.ID) > 64 || (i == 0 && !isPlain(key.ID)) {
			found = append(found, fmt.Sprintf("key number %d must have 32 bytes and an id of at most 64 letters, digits, dots, hyphens and underscores", i+1))
		}
		if named[key.ID] {
			found = append(found, fmt.Sprintf("key number %d has the id of another", i+1))
		}
		named[key.ID] = true
	}
	return found
}

// isPlain reports whether an id needs no escaping in SQL, in JSON and on a command line.
func isPlain(id string) bool {
	return !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".-_", r)
	})
}
