package api_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/event"
	"earshot/internal/send"
	"earshot/internal/testkit/apptest"
	"earshot/internal/webhooks"
	"earshot/webhook"
)

// text returns the source of a page of the guide.
func text(t *testing.T, name string) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "docs", "api", name+".md"))
	require.NoError(t, err)
	return string(source)
}

// firsts returns the first group of each match of a pattern.
func firsts(text, pattern string) (found []string) {
	for _, groups := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, groups[1])
	}
	return found
}

func TestTheGuideTellsOfEveryErrorCodeItsCauseAndItsCure(t *testing.T) {
	t.Parallel()
	sections := strings.Split(text(t, "errors"), "\n### ")[1:]
	var codes []string
	for _, section := range sections {
		code, body, _ := strings.Cut(section, "\n")
		codes = append(codes, code)
		require.Regexp(t, `(?s)\*\*Status:\*\* \d{3}\.\n\*\*Cause:\*\* \S.*\n\*\*Cure:\*\* \S`, body, code)
		status := firsts(body, `\*\*Status:\*\* (\d+)`)[0]
		require.Contains(t, load(t).Info.Description, fmt.Sprintf("| %s | `%s` |", status, code), "the contract's table has the same status")
	}
	require.ElementsMatch(t, enum(load(t), "ErrorCode"), codes)
}

func TestTheGuideTellsOfEveryEventAndOfTheirSchedule(t *testing.T) {
	t.Parallel()
	page := text(t, "webhooks")
	events := make([]string, len(event.Types))
	for i, e := range event.Types {
		events[i] = string(e)
	}
	require.Equal(t, events, firsts(page, "(?m)^\\| `([a-z]+\\.[a-z_]+)` \\|"))

	rows := firsts(page, `(?m)^\| \d \| (.*) \|$`)
	require.Len(t, rows, webhook.MaxAttempts)
	for i, row := range rows[1:] {
		delay, ok := webhook.RetryDelay(i + 1)
		require.True(t, ok)
		require.Equal(t, spelled(delay), row)
	}
	require.Contains(t, page, fmt.Sprintf("%d seconds", int(send.AttemptTimeout.Seconds())))
	require.Contains(t, page, fmt.Sprintf("%d deliveries", webhooks.MaxConsecutiveFailures))
	require.Contains(t, text(t, "verifying-webhooks"), fmt.Sprintf("%d seconds", int(webhook.Tolerance.Seconds())))
	for _, header := range []string{webhook.HeaderEvent, webhook.HeaderDelivery, webhook.HeaderSignature} {
		require.Contains(t, page, "| `"+header+"` |")
	}
}

// spelled writes a duration as the guide does.
func spelled(d time.Duration) string {
	for unit, name := range map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour"} {
		if n := d / unit; n > 0 && n < 60 && d%unit == 0 {
			if n > 1 {
				name += "s"
			}
			return fmt.Sprintf("%d %s", n, name)
		}
	}
	return d.String()
}

func TestTheGuideHasTheLimitsOfTheContractAndOfTheCode(t *testing.T) {
	t.Parallel()
	c := load(t)
	limit := func(name string) *openapi3.Schema { return c.Components.Parameters[name].Value.Schema.Value }
	for row, s := range map[string]*openapi3.Schema{
		"boards": limit("BoardLimitParam"), "deliveries of a webhook": limit("DeliveryLimitParam"), "all others": limit("LimitParam"),
	} {
		require.Contains(t, text(t, "pagination"), fmt.Sprintf("| %s | %v | %v |", row, s.Default, *s.Max))
	}
	require.Contains(t, text(t, "pagination"), fmt.Sprintf("| the whole list | %v |", *limit("WholeLimitParam").Max))

	key := limit("IdempotencyKeyParam")
	require.Contains(t, text(t, "idempotency"), fmt.Sprintf("%d to %d characters", key.MinLength, *key.MaxLength))
	require.Contains(t, text(t, "idempotency"), fmt.Sprintf("%d hours", int(change.IdempotencyRetention.Hours())))

	days := func(schema string) int {
		return int(*c.Components.Schemas[schema].Value.Properties["overlapSeconds"].Value.Max) / (24 * 60 * 60)
	}
	require.Contains(t, text(t, "authentication"), fmt.Sprintf("%d days", days("RotateApiKeyRequest")))
	require.Contains(t, text(t, "webhooks"), fmt.Sprintf("%d days", days("RotateWebhookSecretRequest")))

	settings := map[string]string{}
	for _, s := range config.Settings() {
		settings[s.Name] = s.Default
	}
	require.Contains(t, text(t, "rate-limits"), settings["EARSHOT_RATE_LIMIT"])
	kept, err := time.ParseDuration(settings["EARSHOT_RETENTION"])
	require.NoError(t, err)
	for _, page := range []string{"webhooks", "privacy"} {
		require.Contains(t, text(t, page), fmt.Sprintf("%d days", int(kept.Hours())/24))
	}
}

func TestTheAPIChangelogListsEachDeprecatedOperation(t *testing.T) {
	t.Parallel()
	for path, item := range load(t).Paths.Map() {
		for method, o := range item.Operations() {
			if o.Deprecated {
				require.Contains(t, text(t, "changelog"), method+" "+path)
			}
		}
	}
}

func TestTheGuideIsServedBesideTheReferenceAndCanBeSearched(t *testing.T) {
	t.Parallel()
	n := apptest.Start(t, apptest.Options{}).Tenant(t)
	get := func(path string) string {
		a := n.Do(t, http.MethodGet, path, nil, "Authorization", "")
		require.Equal(t, http.StatusOK, a.Status, path)
		require.Equal(t, "text/html; charset=utf-8", a.Header.Get("Content-Type"), path)
		return string(a.Raw)
	}
	home := get("/v1/docs")
	links := firsts(home, `href="(/v1/docs/[a-z-]+)"`)
	slices.Sort(links)
	for _, link := range slices.Compact(links) {
		require.Contains(t, get(link), `action="/v1/docs/search"`, "a search on every page")
	}
	require.Contains(t, get("/v1/docs/search?q=rotate+secret"), `href="/v1/docs/webhooks#rotate-the-secret"`)
	require.Contains(t, get("/v1/docs/search?q=Merge+posts"), `href="/v1/docs/reference#/operations/mergePosts"`, "operations are found, too")
	require.Contains(t, get("/v1/docs/search"), "Type some words above.")

	require.Contains(t, get("/v1/docs/search?q=secret"+strings.Repeat("+", 5000)+"no-such-word"), "<mark>secret</mark>", "the first 200 characters count")
	a := n.Do(t, http.MethodGet, "/v1/docs/no-such-page", nil)
	require.Equal(t, http.StatusNotFound, a.Status)
}
