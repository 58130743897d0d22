package feedback_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"earshot/internal/feedback"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
)

// FuzzTheDatabaseReadsAnySearch sends texts that the API accepts as a search to a real Postgres.
func FuzzTheDatabaseReadsAnySearch(f *testing.F) {
	const longest = 200 // page.MaxSearch, which is above this package
	for _, q := range []string{
		"dark mode", `"dark mode" -night or day`, "-", "---", "foo--bar", "- - -a", `-"-"-"`, "a:*&!(b|c)<->d", `\'"\`, "-or -or", "",
		strings.Repeat("-", longest), strings.Repeat("- ", 100), strings.Repeat("-(", 100), strings.Repeat("-<", 100),
		strings.Repeat("-\u2003", 100), strings.Repeat("-\u00a0\u0085", 66), strings.Repeat("-\x1f", 100), strings.Repeat("x", 99) + strings.Repeat("-", 100),
		strings.Repeat(`-"" `, 50), strings.Repeat("-a or ", 33),
	} {
		f.Add(q)
	}
	s := testkit.Store(f)
	on := publicid.NewBoard()
	f.Fuzz(func(t *testing.T, q string) {
		if !utf8.ValidString(q) || strings.ContainsRune(q, 0) {
			return
		}
		if letters := []rune(q); len(letters) > longest {
			q = string(letters[:longest])
		}
		_, err := feedback.PostsHolding(t.Context(), s, on, q, feedback.TitleOrText, 1)
		require.NoError(t, err, "%q", q)
	})
}
