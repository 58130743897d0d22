package web

import (
	"bytes"
	"context"
	"image"
	"image/draw"
	"image/png"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/go-faster/errors"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// The picture of a page that others show beside a link to it (Open Graph), drawn here.

const (
	previewWidth, previewHeight = 1200, 630 // what those who show them ask for
	previewMargin               = 80
	titleSize, titleLine        = 68, 84
	titleLines                  = 4
	smallSize                   = 34
	// previewAge: others keep their own copy for longer anyway.
	previewAge = time.Hour
)

// Go's own fonts, which are free and have Latin, Greek and Cyrillic letters.
var (
	boldFont    = mustParse(gobold.TTF)
	regularFont = mustParse(goregular.TTF)
)

func mustParse(file []byte) *sfnt.Font {
	f, err := opentype.Parse(file)
	if err != nil {
		panic(err) // it is in the binary
	}
	return f
}

// preview draws a title with a line above and one below it.
type preview struct{ above, title, below, color string }

func (p *Pages) workspaceImage(ctx context.Context, v *visit) (*answer, error) {
	if shows, err := p.Feedback.HasPublicBoard(ctx); err != nil || !shows {
		return nothingOr(err)
	}
	return v.draw(preview{title: v.org.Name})
}

func (p *Pages) boardImage(ctx context.Context, v *visit) (*answer, error) {
	b, err := p.onBoard(ctx, v)
	if err != nil {
		return nil, err
	}
	return v.draw(preview{above: v.org.Name, title: b.Name})
}

func (p *Pages) postImage(ctx context.Context, v *visit) (*answer, error) {
	b, one, err := p.onPost(ctx, v)
	if err != nil {
		return nil, err
	}
	return v.draw(preview{
		above: v.org.Name + " · " + b.Name, title: one.Title,
		below: v.words.text("status."+string(one.Status)) + " · " + v.words.count("votes", one.VoteCount),
	})
}

func (v *visit) draw(of preview) (*answer, error) {
	if v.org.Color != nil {
		of.color = strings.TrimPrefix(*v.org.Color, "#")
	}
	picture, err := of.draw()
	if err != nil {
		return nil, err
	}
	a := newAnswer(http.StatusOK, "image/png", picture)
	a.maxAge = previewAge
	return a, nil
}

func (of preview) draw() ([]byte, error) {
	if of.color == "" {
		of.color = "1d4ed8"
	}
	accent, _ := readable(parseColor(of.color), lightGrounds)
	ink := parseColor("1b1f27")
	picture := image.NewRGBA(image.Rect(0, 0, previewWidth, previewHeight))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(white.pixel()), image.Point{}, draw.Src)
	draw.Draw(picture, image.Rect(0, 0, previewWidth, 20), image.NewUniform(accent.pixel()), image.Point{}, draw.Src)
	small, err := newPen(picture, regularFont, smallSize)
	if err != nil {
		return nil, err
	}
	large, err := newPen(picture, boldFont, titleSize)
	if err != nil {
		return nil, err
	}
	small.write(small.lines(of.above, 1), accent, previewMargin+smallSize, 0)
	lines := large.lines(of.title, titleLines)
	top := (previewHeight-len(lines)*titleLine)/2 + titleSize
	large.write(lines, ink, top, titleLine)
	small.write(small.lines(of.below, 1), ink, previewHeight-previewMargin, 0)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, picture); err != nil {
		return nil, errors.Wrap(err, "encode the picture")
	}
	return out.Bytes(), nil
}

// pen writes on a picture. It isn't shared: a face keeps what it draws with.
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

const room = fixed.Int26_6((previewWidth - 2*previewMargin) << 6)

// lines breaks a text between words, and a long word anywhere. What has no room ends in dots.
// Characters that the font doesn't have are left out.
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

// drawable is the part of a text that the font has.
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

// cut splits a word where the line ends.
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

func (p *pen) write(lines []string, in rgb, y, height int) {
	d := font.Drawer{Dst: p.on, Src: image.NewUniform(in.pixel()), Face: p.face}
	for i, line := range lines {
		d.Dot = fixed.P(previewMargin, y+i*height)
		d.DrawString(line)
	}
}
