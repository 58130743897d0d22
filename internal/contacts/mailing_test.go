package contacts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/contacts"
	"earshot/internal/testkit"
)

// TestMayBeMailedMatchesTheTableOfTheSpecification has the table's rows, in its order.
func TestMayBeMailedMatchesTheTableOfTheSpecification(t *testing.T) {
	t.Parallel()
	const yes, admin, no = contacts.Allowed, contacts.AdminsDecision, contacts.Refused
	for _, row := range []struct {
		source, basis      string
		updates, marketing contacts.Permission
	}{
		{"identify", "sdk_identify", yes, yes},
		{"admin", "admin_created", admin, admin},
		{"public_post", "public_interaction_opt_in", yes, yes},
		{"public_vote", "public_interaction_opt_in", yes, yes},
		{"public_comment", "public_interaction_opt_in", yes, yes},
		{"identify", "legacy_inferred", no, no},
		{"admin", "legacy_inferred", no, no},
		{"public_post", "legacy_inferred", no, no},
		{"public_vote", "legacy_inferred", no, no},
		{"public_comment", "legacy_inferred", no, no},
		// Combinations outside of the table are refused.
		{"public_vote", "sdk_identify", no, no},
		{"identify", "public_interaction_opt_in", no, no},
		{"identify", "admin_created", no, no},
		{"import", "sdk_identify", no, no},
		{"identify", "", no, no},
	} {
		require.Equal(t, row.updates, contacts.MayBeMailed(row.source, row.basis, contacts.Updates), row)
		require.Equal(t, row.marketing, contacts.MayBeMailed(row.source, row.basis, contacts.Marketing), row)
		require.Equal(t, yes, contacts.MayBeMailed(row.source, row.basis, contacts.AccessRequest), "who asks is answered: %v", row)
	}
}

// TestTheGuideAndMayBeMailedAgreeOnEachProvenance compares the guide with MayBeMailed.
func TestTheGuideAndMayBeMailedAgreeOnEachProvenance(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "api", "privacy.md"))
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| (`[^|]+`) \\| `([a-z_]+)` \\|[^|]*\\| ([^|]+) \\|$").FindAllStringSubmatch(string(guide), -1)
	require.NotEmpty(t, rows)
	for _, row := range rows {
		for _, source := range strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ") {
			may := contacts.MayBeMailed(source, row[2], contacts.Updates)
			require.Equal(t, strings.HasPrefix(row[3], "yes"), may == contacts.Allowed, "%v says %s", row[0], may)
		}
	}
}
