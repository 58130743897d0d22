package webhook_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/webhook"
)

func TestRetriesFollowThePublishedSchedule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		failed int
		delay  time.Duration
		ok     bool
	}{
		{"attempt 1 is made at once", 0, 0, true},
		{"attempt 2 follows after 30 seconds", 1, 30 * time.Second, true},
		{"attempt 3 follows after 2 minutes", 2, 2 * time.Minute, true},
		{"attempt 4 follows after 10 minutes", 3, 10 * time.Minute, true},
		{"attempt 5 follows after an hour", 4, time.Hour, true},
		{"no attempt follows the fifth", 5, 0, false},
		{"no attempt follows a count beyond the fifth", 1 << 40, 0, false},
		{"a count below zero means that none was made", -1, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			delay, ok := webhook.RetryDelay(c.failed)
			require.Equal(t, c.delay, delay)
			require.Equal(t, c.ok, ok)
		})
	}
}

func TestTheWireNamesAreThoseOfTheSpecification(t *testing.T) {
	t.Parallel()
	require.Equal(t, "X-Service-Event", webhook.HeaderEvent)
	require.Equal(t, "X-Service-Delivery", webhook.HeaderDelivery)
	require.Equal(t, "X-Service-Signature", webhook.HeaderSignature)
	require.Equal(t, "Service-Webhooks/1.0", webhook.UserAgent)
	require.Equal(t, "whsec_", webhook.SecretPrefix)
	require.Equal(t, 300*time.Second, webhook.Tolerance)
	require.Equal(t, 5, webhook.MaxAttempts)
}

func TestANewSecretIsThePrefixAnd32LettersAndDigits(t *testing.T) {
	t.Parallel()
	shape := regexp.MustCompile(`^whsec_[0-9A-Za-z]{32}$`)
	for range 100 {
		require.Regexp(t, shape, webhook.NewSecret())
	}
}

func TestNewSecretsDifferAndFavourNoCharacter(t *testing.T) {
	t.Parallel()
	const secrets = 4000
	seen := map[string]bool{}
	counts := map[rune]int{}
	for range secrets {
		secret := webhook.NewSecret()
		require.False(t, seen[secret])
		seen[secret] = true
		for _, c := range strings.TrimPrefix(secret, webhook.SecretPrefix) {
			counts[c]++
		}
	}
	require.Len(t, counts, 62)
	// Each character is expected 2,065 times with a deviation of 45. Without
	// discarded bytes, the first eight would come 2,500 times.
	expected := float64(secrets*32) / 62
	for c, n := range counts {
		require.InDelta(t, expected, n, 7*45, "character %q", c)
	}
}

func TestReceiversDependOnTheStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps",
		"-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	out, err := list.Output()
	require.NoError(t, err)
	require.Equal(t, []string{"earshot/webhook"}, strings.Fields(string(out)))
}
