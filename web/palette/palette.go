// Package palette has the colours of the pages. An organization may choose any colour. The pages
// use the nearest colour with enough contrast for WCAG 2.2.
package palette

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
)

// RGB is a colour. Its components range from 0 to 255.
type RGB struct{ r, g, b float64 }

// Parse reads six hexadecimal digits.
func Parse(hex string) RGB {
	n, _ := strconv.ParseUint(hex, 16, 24) // a pattern has checked the six digits
	return RGB{float64(n >> 16), float64(n >> 8 & 0xff), float64(n & 0xff)}
}

func (c RGB) String() string {
	p := c.Pixel()
	return fmt.Sprintf("#%02x%02x%02x", p.R, p.G, p.B)
}

// Pixel is the colour in whole numbers, as a screen shows it.
func (c RGB) Pixel() color.RGBA {
	return color.RGBA{uint8(math.Round(c.r)), uint8(math.Round(c.g)), uint8(math.Round(c.b)), 255}
}

// luminance is the relative luminance of WCAG.
func (c RGB) luminance() float64 {
	part := func(v float64) float64 {
		if v /= 255; v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	p := c.Pixel() // a screen shows whole numbers
	return 0.2126*part(float64(p.R)) + 0.7152*part(float64(p.G)) + 0.0722*part(float64(p.B))
}

// Contrast is the contrast ratio of WCAG.
func Contrast(a, b RGB) float64 {
	la, lb := a.luminance(), b.luminance()
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// mixed moves the colour towards another one by a fraction.
func (c RGB) mixed(to RGB, part float64) RGB {
	return RGB{c.r + (to.r-c.r)*part, c.g + (to.g-c.g)*part, c.b + (to.b-c.b)*part}
}

var (
	// White is the lightest colour.
	White = RGB{255, 255, 255}
	// Black is the darkest colour.
	Black = RGB{}
	// LightGrounds are the backgrounds in style.css for text in the accent colour: --ground and
	// --raised.
	LightGrounds = []RGB{Parse("ffffff"), Parse("f4f5f7")}
	// DarkGrounds are the same backgrounds in the dark style.
	DarkGrounds = []RGB{Parse("14171d"), Parse("1f242d")}
)

// TextContrast is the minimum contrast of text in WCAG 2.2 AA.
const TextContrast = 4.5

// Readable darkens or lightens the colour until it is legible on all grounds. It also returns the
// more legible colour for text on it, black or white.
func Readable(c RGB, grounds []RGB) (accent, on RGB) {
	towards := Black
	if grounds[0].luminance() < 0.5 {
		towards = White
	}
	for part := 0.0; part <= 1; part += 0.02 {
		accent = c.mixed(towards, part)
		if readableOn(accent, grounds) {
			break
		}
	}
	if Contrast(accent, White) >= Contrast(accent, Black) {
		return accent, White
	}
	return accent, Black
}

func readableOn(c RGB, grounds []RGB) bool {
	for _, g := range grounds {
		if Contrast(c, g) < TextContrast {
			return false
		}
	}
	return true
}
