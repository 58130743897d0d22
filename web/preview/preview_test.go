package preview

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/font"
)

func drawn(t *testing.T, of Preview) image.Image {
	t.Helper()
	file, err := of.Draw()
	require.NoError(t, err)
	picture, err := png.Decode(bytes.NewReader(file))
	require.NoError(t, err)
	require.Equal(t, image.Rect(0, 0, width, height), picture.Bounds())
	return picture
}

// inked returns the part of a picture that is not white, below the line at its top.
func inked(picture image.Image) (of image.Rectangle) {
	for y := 20; y < height; y++ {
		for x := range width {
			if r, g, b, _ := picture.At(x, y).RGBA(); r+g+b < 3*0xf000 {
				of = of.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return of
}

func TestAPictureHasRoomForAnyTitle(t *testing.T) {
	t.Parallel()
	for what, title := range map[string]string{
		"long": strings.Repeat("many words ", 100), "one word": strings.Repeat("ä", 500), "short": "Hi", "empty": "", "wide": strings.Repeat("WWWW ", 99),
		"without letters that the font has": strings.Repeat("反馈", 100), "lines": "a\nb\tc", "broken": "a\xff\x00b",
	} {
		picture := drawn(t, Preview{Above: title, Title: title, Below: title})
		// Letters may extend beyond their box by some pixels.
		room := image.Rect(margin-8, 0, width-margin+8, height-margin+20)
		require.True(t, inked(picture).In(room), "%s: %s", what, inked(picture))
		require.Equal(t, what == "empty" || strings.HasPrefix(what, "without"), inked(picture).Empty(), what)
	}
}

func TestAPictureHasTheOrganizationsColour(t *testing.T) {
	t.Parallel()
	require.Equal(t, color.RGBA{0x0f, 0x76, 0x6e, 255}, color.RGBAModel.Convert(drawn(t, Preview{Title: "x", Color: "0f766e"}).At(5, 5)))
	light := color.RGBAModel.Convert(drawn(t, Preview{Title: "x", Color: "ffff00"}).At(5, 5)).(color.RGBA)
	require.Less(t, light.R, uint8(0xa0), "one that can't be seen on white is made darker")
}

func TestLinesBreakBetweenWordsAndEndInDots(t *testing.T) {
	t.Parallel()
	p, err := newPen(image.NewRGBA(image.Rect(0, 0, 1, 1)), boldFont, titleSize)
	require.NoError(t, err)
	require.Equal(t, []string{"Dark mode"}, p.lines("  Dark\n mode 反 ", titleLines))
	lines := p.lines(strings.Repeat("many words ", 100), titleLines)
	require.Len(t, lines, titleLines)
	require.True(t, strings.HasSuffix(lines[titleLines-1], "…"))
	for _, line := range append(lines, p.lines(strings.Repeat("ä", 500), titleLines)...) {
		require.LessOrEqual(t, font.MeasureString(p.face, line), room)
		require.NotEmpty(t, line)
	}
	require.Equal(t, strings.Repeat("ä", 60), strings.Join(p.lines(strings.Repeat("ä", 60), titleLines), ""), "a long word is broken")
	require.Empty(t, p.lines("反馈", titleLines))
}
