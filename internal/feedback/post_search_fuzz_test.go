package feedback_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"earshot/internal/feedback"
	"earshot/internal/postgres"
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
	o, err := s.Client().Organization.Create().SetName("Acme").Save(s.Across("a test").Context(f.Context()))
	require.NoError(f, err)
	on := s.Client().Board.Create().SetName("Ideas").SetSlug("ideas").SaveX(postgres.WithOrganization(f.Context(), o.ID)).ID
	f.Fuzz(func(t *testing.T, q string) {
		if !utf8.ValidString(q) || strings.ContainsRune(q, 0) {
			return
		}
		if letters := []rune(q); len(letters) > longest {
			q = string(letters[:longest])
		}
		_, err := feedback.PostsHolding(postgres.WithOrganization(t.Context(), o.ID), s, on, q, feedback.TitleOrText, 1)
		require.NoError(t, err, "%q", q)
	})
}
