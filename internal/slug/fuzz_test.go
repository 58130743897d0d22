package slug

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"earshot/internal/problem"
)

// FuzzASlugIsMadeOfAnyTitle checks that generated slugs obey the rules for slugs of callers, with a
// number and without.
func FuzzASlugIsMadeOfAnyTitle(f *testing.F) {
	for _, title := range []string{
		"Dark mode", "", "   ", "___", "日本語", "Ünïcödé & <b>", "a_b--c", "😀", "-", strings.Repeat("ab ", 90), "İ", "\u0000", "ﷺﷺﷺﷺﷺ",
	} {
		f.Add(title, 5)
	}
	f.Fuzz(func(t *testing.T, title string, lost int) {
		if !utf8.ValidString(title) {
			return
		}
		for _, high := range []int{60, 80} {
			requireSlug(t, From(title, "post", high), high)
			left := lost % tries
			insert := func(slug string) (bool, error) {
				requireSlug(t, slug, high)
				left--
				return left < 0, nil
			}
			require.NoError(t, Free(From(title, "post", high), high, func(string) (bool, error) { return false, nil }, insert))
		}
	})
}

func requireSlug(t *testing.T, slug string, high int) {
	t.Helper()
	var bad problem.Fields
	Check(&bad, slug, high)
	require.Empty(t, bad, slug)
}
