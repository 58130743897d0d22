package feedback_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"earshot/internal/feedback"
	"earshot/internal/postgres"
	"earshot/internal/testkit"
)

// longestSearch is page.MaxSearch, which is above this package.
const longestSearch = 200

// Postgres has operators, quotes and negations of its own in the text of a search. An unusual sequence of them
// must find nothing, not fail.
func TestPostgresReadsAnySearch(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	o, err := s.Client().Organization.Create().SetName("Acme").Save(s.Across("a test").Context(t.Context()))
	require.NoError(t, err)
	ctx := postgres.WithOrganization(t.Context(), o.ID)
	board := s.Client().Board.Create().SetName("Ideas").SetSlug("ideas").SaveX(ctx).ID
	read := func(t require.TestingT, q string) {
		_, err := feedback.PostsHolding(ctx, s, board, q, feedback.TitleOrText, 1)
		require.NoError(t, err, "%q", q)
	}
	for name, q := range map[string]string{
		"nothing":                    "",
		"every operator":             `"dark mode" -night or day`,
		"a dash":                     "-",
		"dashes":                     strings.Repeat("-", longestSearch),
		"dashes in a word":           "foo--bar",
		"dashes after a word":        strings.Repeat("x", 99) + strings.Repeat("-", 100),
		"dashes and spaces":          strings.Repeat("- ", 100),
		"dashes and wide spaces":     strings.Repeat("-\u2003", 100),
		"dashes and spaces of HTML":  strings.Repeat("-\u00a0\u0085", 66),
		"dashes and separators":      strings.Repeat("-\x1f", 100),
		"dashes and parentheses":     strings.Repeat("-(", 100),
		"dashes and angle brackets":  strings.Repeat("-<", 100),
		"dashes and quotes":          `-"-"-"`,
		"phrases of nothing":         strings.Repeat(`-"" `, 50),
		"alternatives of exclusions": strings.Repeat("-a or ", 33),
		"operators of a tsquery":     "a:*&!(b|c)<->d",
		"quotes and a backslash":     `\'"\`,
	} {
		t.Run(name, func(t *testing.T) { read(t, q) })
	}
	// The parts are repeated, because a part that is harmless once has failed a hundred times in a row.
	part := rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune("-\"'\\()<>|&!:* \u00a0\u2003\u0085\x1fa")))
	parts := rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat(rapid.StringOfN(part, 1, 5, -1).Draw(t, "part"), rapid.IntRange(1, longestSearch).Draw(t, "times"))
	})
	rapid.Check(t, func(t *rapid.T) {
		letters := []rune(strings.Join(rapid.SliceOfN(parts, 1, 4).Draw(t, "parts"), " or "))
		q := strings.ReplaceAll(string(letters[:min(len(letters), longestSearch)]), "\x00", "") // the API refuses NUL
		read(t, q)
	})
}
