package feedback

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestASlugIsFoundThoughOthersAreFaster has three other requests win the next slugs
// during each of ours, which is how a busy board looks to a slow connection.
func TestASlugIsFoundThoughOthersAreFaster(t *testing.T) {
	t.Parallel()
	end, tries := 500, 0
	number := func(slug string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(slug, "dark-"))
		require.True(t, err == nil || slug == "dark")
		return max(n, 1)
	}
	taken := func(slug string) (bool, error) { return number(slug) <= end, nil }
	insert := func(slug string) (bool, error) {
		if tries++; tries < 300 {
			end += 3
		}
		return number(slug) > end, nil
	}
	require.NoError(t, freeSlug("dark", maxPostSlug, taken, insert))
	require.GreaterOrEqual(t, tries, 300)
}
