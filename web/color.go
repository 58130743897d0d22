package web

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
)

// An organization chooses any colour; the pages use one near to it that can be read, as WCAG 2.2
// has it.

type rgb struct{ r, g, b float64 } // 0 to 255

func parseColor(hex string) rgb {
	n, _ := strconv.ParseUint(hex, 16, 24) // six digits, by a pattern
	return rgb{float64(n >> 16), float64(n >> 8 & 0xff), float64(n & 0xff)}
}

func (c rgb) String() string {
	p := c.pixel()
	return fmt.Sprintf("#%02x%02x%02x", p.R, p.G, p.B)
}

func (c rgb) pixel() color.RGBA {
	return color.RGBA{uint8(math.Round(c.r)), uint8(math.Round(c.g)), uint8(math.Round(c.b)), 255}
}

// luminance is the relative luminance of WCAG.
func (c rgb) luminance() float64 {
	part := func(v float64) float64 {
		if v /= 255; v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	p := c.pixel() // what is shown has whole numbers
	return 0.2126*part(float64(p.R)) + 0.7152*part(float64(p.G)) + 0.0722*part(float64(p.B))
}

func contrast(a, b rgb) float64 {
	la, lb := a.luminance(), b.luminance()
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// mixed goes from the colour towards another one by a part.
func (c rgb) mixed(to rgb, part float64) rgb {
	return rgb{c.r + (to.r-c.r)*part, c.g + (to.g-c.g)*part, c.b + (to.b-c.b)*part}
}

var (
	white = rgb{255, 255, 255}
	black = rgb{}
	// Those of style.css that text in the accent's colour stands on: --ground and --raised.
	lightGrounds = []rgb{parseColor("ffffff"), parseColor("f4f5f7")}
	darkGrounds  = []rgb{parseColor("14171d"), parseColor("1f242d")}
)

// textContrast is what WCAG 2.2 AA asks of text.
const textContrast = 4.5

// readable is the colour, darker or lighter until it can be read on all of the grounds, and what
// can be read on it.
func readable(c rgb, grounds []rgb) (accent, on rgb) {
	towards := black
	if grounds[0].luminance() < 0.5 {
		towards = white
	}
	for part := 0.0; part <= 1; part += 0.02 {
		accent = c.mixed(towards, part)
		if readableOn(accent, grounds) {
			break
		}
	}
	if contrast(accent, white) >= contrast(accent, black) {
		return accent, white
	}
	return accent, black
}

func readableOn(c rgb, grounds []rgb) bool {
	for _, g := range grounds {
		if contrast(c, g) < textContrast {
			return false
		}
	}
	return true
}
