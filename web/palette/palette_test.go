package palette_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"earshot/internal/testkit/tier"
	"earshot/web/palette"
)

func TestMain(m *testing.M) {
	tier.Properties(100, 30) // as many as in make test-all, because they take milliseconds
	os.Exit(m.Run())
}

func TestAnyColourOfAnOrganizationCanBeRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		chosen := palette.Parse(fmt.Sprintf("%06x", rapid.Uint32Range(0, 0xffffff).Draw(t, "color")))
		for _, grounds := range [][]palette.RGB{palette.LightGrounds, palette.DarkGrounds} {
			accent, on := palette.Readable(chosen, grounds)
			for _, ground := range grounds {
				require.GreaterOrEqual(t, palette.Contrast(accent, ground), palette.TextContrast, "%s on %s", accent, ground)
			}
			require.GreaterOrEqual(t, palette.Contrast(on, accent), palette.TextContrast, "%s on %s", on, accent)
		}
	})
}

func TestAColourThatCanBeReadStaysAsItIs(t *testing.T) {
	t.Parallel()
	accent, on := palette.Readable(palette.Parse("0f766e"), palette.LightGrounds)
	require.Equal(t, "#0f766e", accent.String())
	require.Equal(t, palette.White, on)
	require.InDelta(t, 21, palette.Contrast(palette.Black, palette.White), 0.001)
	require.InDelta(t, 4.54, palette.Contrast(palette.Parse("767676"), palette.White), 0.01, "the grey that WCAG's own tables name")
}
