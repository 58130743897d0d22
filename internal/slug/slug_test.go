package slug_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/slug"
)

// TestASlugIsFoundThoughOthersAreFaster lets three other requests take the next slugs during each
// attempt, as on a busy board with a slow connection.
func TestASlugIsFoundThoughOthersAreFaster(t *testing.T) {
	t.Parallel()
	end, tries := 500, 0
	number := func(name string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(name, "dark-"))
		require.True(t, err == nil || name == "dark")
		return max(n, 1)
	}
	taken := func(name string) (bool, error) { return number(name) <= end, nil }
	insert := func(name string) (bool, error) {
		if tries++; tries < 300 {
			end += 3
		}
		return number(name) > end, nil
	}
	require.NoError(t, slug.Free("dark", 80, taken, insert))
	require.GreaterOrEqual(t, tries, 300)
}
