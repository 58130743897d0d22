package main

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

type point struct{ x, y float64 }

// line is a series of points with a name.
type line struct {
	name   string
	points []point
}

// The plot's size in SVG units: the area inside the axes, and the margins around it.
const (
	plotWidth, plotHeight = 560.0, 300.0
	plotLeft, plotTop     = 70.0, 46.0
	plotRight, plotBottom = 60.0, 56.0
)

// Colours that readers with red-green colour blindness can tell apart, on paper of any colour.
var plotColours = []string{"#0072b2", "#d55e00"}

// mark is a position on an axis with its label.
type mark struct {
	At    float64
	Label string
}

// drawn is a line in the coordinates of the plot.
type drawn struct {
	Name, Colour, Path string
	Dots               [][2]float64
	EndX, EndY         float64
}

var plotTemplate = template.Must(template.New("plot").Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{.Width}} {{.Height}}" width="{{.Width}}" height="{{.Height}}" font-family="sans-serif" font-size="13">
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="{{.Left}}" y="24" font-size="16" fill="#222222">{{.Title}}</text>
{{range .Y}}<path d="M{{$.Left}} {{.At}}H{{$.End}}" stroke="#dddddd"/><text x="{{$.LabelX}}" y="{{.At}}" dy="4" text-anchor="end" fill="#444444">{{.Label}}</text>
{{end}}{{range .X}}<path d="M{{.At}} {{$.Bottom}}v5" stroke="#444444"/><text x="{{.At}}" y="{{$.LabelY}}" text-anchor="middle" fill="#444444">{{.Label}}</text>
{{end}}<path d="M{{.Left}} {{.Bottom}}H{{.End}}" stroke="#444444"/>
<text x="{{.Middle}}" y="{{.NameY}}" text-anchor="middle" fill="#222222">{{.XName}}</text>
<text transform="translate(18 {{.MiddleY}}) rotate(-90)" text-anchor="middle" fill="#222222">{{.YName}}</text>
{{range .Lines}}<path d="{{.Path}}" fill="none" stroke="{{.Colour}}" stroke-width="2"/>
{{$colour := .Colour}}{{range .Dots}}<circle cx="{{index . 0}}" cy="{{index . 1}}" r="3.5" fill="{{$colour}}"/>{{end}}
<text x="{{.EndX}}" y="{{.EndY}}" dx="10" dy="4" fill="{{.Colour}}">{{.Name}}</text>
{{end}}</svg>
`))

// plot draws lines as SVG, over a linear x axis from 0 and a logarithmic y axis.
func plot(title, xName, yName string, lines []line) string {
	least, most, far := math.Inf(1), 0.0, 0.0
	for _, l := range lines {
		for _, p := range l.points {
			least, most, far = min(least, p.y), max(most, p.y), max(far, p.x)
		}
	}
	low, high := math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	place := func(p point) [2]float64 {
		return [2]float64{
			rounded(plotLeft + p.x/far*plotWidth),
			rounded(plotTop + (high-math.Log10(p.y))/(high-low)*plotHeight),
		}
	}
	data := struct {
		Title, XName, YName                    string
		Width, Height, Left, End, Bottom       float64
		LabelX, LabelY, Middle, MiddleY, NameY float64
		X, Y                                   []mark
		Lines                                  []drawn
	}{
		Title: title, XName: xName, YName: yName,
		Width: plotLeft + plotWidth + plotRight, Height: plotTop + plotHeight + plotBottom,
		Left: plotLeft, End: plotLeft + plotWidth, Bottom: plotTop + plotHeight, LabelX: plotLeft - 8, LabelY: plotTop + plotHeight + 20,
		Middle: plotLeft + plotWidth/2, MiddleY: plotTop + plotHeight/2, NameY: plotTop + plotHeight + 44,
	}
	for exponent := low; exponent <= high; exponent++ {
		for _, factor := range []float64{1, 2, 5} {
			if y := factor * math.Pow(10, exponent); factor == 1 || exponent < high {
				data.Y = append(data.Y, mark{place(point{0, y})[1], number(y)})
			}
		}
	}
	// At most eight steps of one, two or five times a power of ten.
	for x, step := 0.0, stepOf(far/8); x <= far; x += step {
		data.X = append(data.X, mark{place(point{x, least})[0], number(x)})
	}
	for i, l := range lines {
		d := drawn{Name: l.name, Colour: plotColours[i%len(plotColours)]}
		for j, p := range l.points {
			at := place(p)
			d.Path += fmt.Sprintf("%s%g %g", map[bool]string{true: "M", false: "L"}[j == 0], at[0], at[1])
			d.Dots, d.EndX, d.EndY = append(d.Dots, at), at[0], at[1]
		}
		data.Lines = append(data.Lines, d)
	}
	var text strings.Builder
	if err := plotTemplate.Execute(&text, data); err != nil {
		panic(err) // the template and its data stand above
	}
	return text.String()
}

func stepOf(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= least {
			return factor * power
		}
	}
	return 10 * power
}

// rounded rounds to a tenth, which is more precise than anyone can see.
func rounded(v float64) float64 { return math.Round(v*10) / 10 }
