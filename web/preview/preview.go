// Package preview draws the picture that other sites show beside a link to a page (Open Graph).
package preview

import (
	"bytes"
	"image"
	"image/draw"
	"image/png"
	"strings"
	"unicode"

	"github.com/go-faster/errors"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"

	"earshot/web/palette"
)

const (
	width, height        = 1200, 630 // the size that other sites recommend
	margin               = 80
	titleSize, titleLine = 68, 84
	titleLines           = 4
	smallSize            = 34
)

// Go's own fonts are free and have Latin, Greek and Cyrillic letters.
var (
	boldFont    = mustParse(gobold.TTF)
	regularFont = mustParse(goregular.TTF)
)

func mustParse(file []byte) *sfnt.Font {
	f, err := opentype.Parse(file)
	if err != nil {
		panic(err) // the font is in the binary
	}
	return f
}

// Preview is a title with a line above and a line below it. Color has six hexadecimal digits; empty
// means the default colour of the pages.
type Preview struct{ Above, Title, Below, Color string }

// Draw returns the picture as a PNG.
func (of Preview) Draw() ([]byte, error) {
	if of.Color == "" {
		of.Color = "1d4ed8"
	}
	accent, _ := palette.Readable(palette.Parse(of.Color), palette.LightGrounds)
	ink := palette.Parse("1b1f27")
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(palette.White.Pixel()), image.Point{}, draw.Src)
	draw.Draw(picture, image.Rect(0, 0, width, 20), image.NewUniform(accent.Pixel()), image.Point{}, draw.Src)
	small, err := newPen(picture, regularFont, smallSize)
	if err != nil {
		return nil, err
	}
	large, err := newPen(picture, boldFont, titleSize)
	if err != nil {
		return nil, err
	}
	small.write(small.lines(of.Above, 1), accent, margin+smallSize, 0)
	lines := large.lines(of.Title, titleLines)
	top := (height-len(lines)*titleLine)/2 + titleSize
	large.write(lines, ink, top, titleLine)
	small.write(small.lines(of.Below, 1), ink, height-margin, 0)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, picture); err != nil {
		return nil, errors.Wrap(err, "encode the picture")
	}
	return out.Bytes(), nil
}

// pen writes on a picture. Pictures never share a pen, because a face has drawing buffers.
type pen struct {
	on   draw.Image
	font *sfnt.Font
	face font.Face
}

func newPen(on draw.Image, of *sfnt.Font, size float64) (*pen, error) {
	face, err := opentype.NewFace(of, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return nil, errors.Wrap(err, "load the font")
	}
	return &pen{on, of, face}, nil
}

const room = fixed.Int26_6((width - 2*margin) << 6)

// lines breaks a text between words, and a long word anywhere. A text that is too long ends in an
// ellipsis. Characters that the font lacks are left out.
func (p *pen) lines(text string, most int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(p.drawable(text)) {
		next := strings.TrimSpace(line + " " + word)
		for font.MeasureString(p.face, next) > room {
			if line == "" {
				line, word = p.cut(word)
			}
			if len(lines) == most-1 {
				return append(lines, p.dotted(line))
			}
			lines, line, next = append(lines, line), "", word
		}
		line = next
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// drawable returns the characters of a text that the font has.
func (p *pen) drawable(text string) string {
	var buffer sfnt.Buffer
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if i, err := p.font.GlyphIndex(&buffer, r); err != nil || i == 0 {
			return -1
		}
		return r
	}, text)
}

// cut splits a word at the end of the line.
func (p *pen) cut(word string) (fits, rest string) {
	for i := range word {
		if i > 0 && font.MeasureString(p.face, word[:i]) > room {
			break
		}
		fits = word[:i]
	}
	if fits == "" {
		return word, ""
	}
	return fits, word[len(fits):]
}

func (p *pen) dotted(line string) string {
	for line != "" && font.MeasureString(p.face, line+"…") > room {
		line = strings.TrimRight(string([]rune(line)[:len([]rune(line))-1]), " ")
	}
	return line + "…"
}

func (p *pen) write(lines []string, in palette.RGB, y, lineHeight int) {
	d := font.Drawer{Dst: p.on, Src: image.NewUniform(in.Pixel()), Face: p.face}
	for i, line := range lines {
		d.Dot = fixed.P(margin, y+i*lineHeight)
		d.DrawString(line)
	}
}
