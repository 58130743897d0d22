package feedback

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"earshot/internal/problem"
)

// FuzzASlugIsMadeOfAnyTitle: what is made for the caller keeps the caller's rules,
// numbered or not.
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
		for _, high := range []int{maxBoardSlug, maxPostSlug} {
			requireSlug(t, slugFrom(title, "post", high), high)
			left := lost % slugTries
			insert := func(slug string) (bool, error) {
				requireSlug(t, slug, high)
				left--
				return left < 0, nil
			}
			require.NoError(t, freeSlug(slugFrom(title, "post", high), high, func(string) (bool, error) { return false, nil }, insert))
		}
	})
}

func requireSlug(t *testing.T, slug string, high int) {
	t.Helper()
	var bad problem.Fields
	slugText(&bad, slug, high)
	require.Empty(t, bad, slug)
}
