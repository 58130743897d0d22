package wordlist_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"earshot/internal/testkit/tier"
	"earshot/internal/wordlist"
)

func TestMain(m *testing.M) {
	tier.Properties(100, 30) // as many as in make test-all: they take milliseconds
	os.Exit(m.Run())
}

func has(text string, words ...string) bool {
	folded := make([]string, len(words))
	for i, w := range words {
		folded[i] = wordlist.Folded(w)
	}
	return wordlist.In(text, folded)
}

func TestAWordIsFoundInAnyCaseAndHoweverItsAccentsAreWritten(t *testing.T) {
	t.Parallel()
	for text, word := range map[string]string{
		"Casino bonus":          "casino",
		"the CASINO":            "Casino",
		"Groẞe Straße":          "STRASSE",
		"cafe\u0301 now":        "CAFÉ",       // decomposed in the text
		"a Café":                "cafe\u0301", // decomposed in the list
		"ｃａｓｉｎｏ":                "casino",     // wide letters
		"ca\u00adsi\u200bno":    "casino",     // a soft hyphen, a space of no width
		"ΟΔΟΣ":                  "οδος",       // either sigma
		"buy cheap\n\t pills":   "Cheap  Pills",
		"(casino)":              "casino",
		"casino":                "casino",
		"casinos, and a casino": "casino",
		"we use c++ here":       "C++",
		"from the ❤\ufe0f":      "❤",
		"hot 💩 stuff":           "💩",
		"hot💩stuff":             "💩",
		"这是垃圾邮件":                "垃圾",
	} {
		require.True(t, has(text, "other", word), "%q in %q", word, text)
	}
}

func TestAPartOfALongerWordIsNoWord(t *testing.T) {
	t.Parallel()
	for text, word := range map[string]string{
		"Scunthorpe":      "thorpe",
		"casinos":         "casino",
		"casino2":         "casino",
		"précasino":       "casino",
		"cafe\u0301":      "cafe",
		"cafés":           "café",
		"e\u0323\u0301x":  "e\u0323", // another accent follows
		"cheap pillsbury": "cheap pills",
		"":                "casino",
	} {
		require.False(t, has(text, word), "%q in %q", word, text)
	}
	require.False(t, has("anything", "\u200b"), "nothing that nobody sees is in everything")
	require.False(t, has("anything"))
}

func TestAWordIsFoundBetweenAnyOtherWords(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, after := rapid.StringMatching(`[\pL\pN .,!]{0,20}`).Draw(t, "before"), rapid.String().Draw(t, "after")
		word := rapid.SampledFrom([]string{"casino", "Straße", "cheap pills", "café"}).Draw(t, "word")
		if !has(before+" "+strings.ToUpper(word)+" "+after, word) {
			t.Fatalf("%q isn't found between %q and %q", word, before, after)
		}
	})
}
