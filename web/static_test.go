package web_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/web/palette"
)

func read(t *testing.T, name string) string {
	t.Helper()
	file, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(file)
}

var variable = regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6});`)

// WCAG 2.2 AA requires a contrast of 4.5 for text and of 3 for the edges of controls.
func TestTheStylesColoursCanBeReadInLightAndDark(t *testing.T) {
	t.Parallel()
	blocks := strings.SplitN(read(t, "static/style.css"), "@media (prefers-color-scheme: dark)", 2)
	require.Len(t, blocks, 2)
	for i, grounds := range [][]palette.RGB{palette.LightGrounds, palette.DarkGrounds} {
		by := map[string]palette.RGB{}
		for _, m := range variable.FindAllStringSubmatch(blocks[i], -1) {
			by[m[1]] = palette.Parse(m[2])
		}
		require.Equal(t, grounds, []palette.RGB{by["ground"], by["raised"]}, "what the organizations' colours are made for")
		for _, ground := range grounds {
			for _, text := range []string{"text", "quiet", "accent"} {
				require.GreaterOrEqual(t, palette.Contrast(by[text], ground), palette.TextContrast, "%s on %s", text, ground)
			}
		}
		require.GreaterOrEqual(t, palette.Contrast(by["on-accent"], by["accent"]), palette.TextContrast)
		require.GreaterOrEqual(t, palette.Contrast(by["line"], by["ground"]), 3.0)
	}
}

func TestTheModuleIsSmallAndMakesNoHTML(t *testing.T) {
	t.Parallel()
	module := read(t, "static/page.js")
	require.Less(t, len(module), 5000)
	require.NotRegexp(t, `innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function\(|fetch|XMLHttpRequest`, module)
	require.NotRegexp(t, `url\(|@import|https?:`, read(t, "static/style.css"))
}
