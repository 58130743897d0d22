package web

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func read(t *testing.T, name string) string {
	t.Helper()
	file, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(file)
}

func TestAnyColourOfAnOrganizationCanBeRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		chosen := parseColor(fmt.Sprintf("%06x", rapid.Uint32Range(0, 0xffffff).Draw(t, "color")))
		for _, grounds := range [][]rgb{lightGrounds, darkGrounds} {
			accent, on := readable(chosen, grounds)
			for _, ground := range grounds {
				require.GreaterOrEqual(t, contrast(accent, ground), textContrast, "%s on %s", accent, ground)
			}
			require.GreaterOrEqual(t, contrast(on, accent), textContrast, "%s on %s", on, accent)
		}
	})
}

func TestAColourThatCanBeReadStaysAsItIs(t *testing.T) {
	t.Parallel()
	accent, on := readable(parseColor("0f766e"), lightGrounds)
	require.Equal(t, "#0f766e", accent.String())
	require.Equal(t, white, on)
	require.InDelta(t, 21, contrast(black, white), 0.001)
	require.InDelta(t, 4.54, contrast(parseColor("767676"), white), 0.01, "the grey that WCAG's own tables name")
}

var variable = regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6});`)

// WCAG 2.2 AA: 4.5 for text, 3 for the edges of what is to be operated.
func TestTheStylesColoursCanBeReadInLightAndDark(t *testing.T) {
	t.Parallel()
	blocks := strings.SplitN(string(styleSource), "@media (prefers-color-scheme: dark)", 2)
	require.Len(t, blocks, 2)
	for i, grounds := range [][]rgb{lightGrounds, darkGrounds} {
		by := map[string]rgb{}
		for _, m := range variable.FindAllStringSubmatch(blocks[i], -1) {
			by[m[1]] = parseColor(m[2])
		}
		require.Equal(t, grounds, []rgb{by["ground"], by["raised"]}, "what the organizations' colours are made for")
		for _, ground := range grounds {
			for _, text := range []string{"text", "quiet", "accent"} {
				require.GreaterOrEqual(t, contrast(by[text], ground), textContrast, "%s on %s", text, ground)
			}
		}
		require.GreaterOrEqual(t, contrast(by["on-accent"], by["accent"]), textContrast)
		require.GreaterOrEqual(t, contrast(by["line"], by["ground"]), 3.0)
	}
}

func TestTheModuleIsSmallAndMakesNoHTML(t *testing.T) {
	t.Parallel()
	require.Less(t, len(moduleSource), 5000)
	require.NotRegexp(t, `innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function\(|fetch|XMLHttpRequest`, string(moduleSource))
	require.NotRegexp(t, `url\(|@import|https?:`, string(styleSource))
}
