package web

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"golang.org/x/text/language"

	"earshot/web/messages"
)

//go:embed templates
var templateFiles embed.FS

// pageNames are the templates of pages. The layout surrounds each of them.
var pageNames = []string{"workspace", "board", "post", "roadmap", "changelog", "notice", "form", "done", "preferences"}

// frameNames are the pages that also exist in the widget's frame, in its layout. The links that stay
// in the frame have target="_self".
var frameNames = []string{"board", "post", "changelog", "form", "done"}

// texts holds the messages and templates of one language.
type texts struct {
	words *messages.Words
	pages map[string]*template.Template
	// inFrame has the pages in the layout of the widget's frame.
	inFrame map[string]*template.Template
}

func loadTexts(tag language.Tag) (*texts, error) {
	w, err := messages.Load(tag)
	if err != nil {
		return nil, err
	}
	functions := template.FuncMap{
		"t": w.Text, "count": w.Count, "date": w.Date,
		"iso":   func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
		"style": func() string { return styleFile.path }, "module": func() string { return moduleFile.path }, "icon": func() string { return iconFile.path },
		"frameStyle": func() string { return frameStyleFile.path }, "frameModule": func() string { return frameModuleFile.path },
	}
	t := &texts{words: w, pages: map[string]*template.Template{}, inFrame: map[string]*template.Template{}}
	parse := func(into map[string]*template.Template, names []string, layouts ...string) error {
		for _, name := range names {
			into[name], err = template.New(name).Funcs(functions).ParseFS(templateFiles, append(layouts, "templates/"+name+".html")...)
			if err != nil {
				return errors.Wrap(err, "parse the templates")
			}
		}
		return nil
	}
	if err := parse(t.pages, pageNames, "templates/layout.html"); err != nil {
		return nil, err
	}
	if err := parse(t.inFrame, frameNames, "templates/layout.html", "templates/frame.html"); err != nil {
		return nil, err
	}
	return t, nil
}

// view is the data of the layout.
type view struct {
	Lang, Title, Description string
	// Hidden excludes a page from search engines, for example the second page of a list.
	Hidden           bool
	Canonical, Image string
	Feed             string
	// Home is the path of the organization's page, and Site is the organization's name.
	Home, Site, Logo, Colors string
	// Board is the label of the views.
	Board string
	Views []link
	// Frame is the data of a page in the widget.
	Frame   frameView
	Content any
}

// link is a link to another page.
type link struct {
	Path, Title string
	Current     bool
}

const typeHTML = "text/html; charset=utf-8"

// page renders a template, in the layout of the visited page.
func (v *visit) page(status int, name string, of view) (*answer, error) {
	of.Lang = v.words.Tag.String()
	filled := v.pages[name]
	if framed := v.inFrame[name]; framed != nil && v.framed() {
		filled = framed
	}
	var out bytes.Buffer
	if err := filled.ExecuteTemplate(&out, "layout", of); err != nil {
		return nil, errors.Wrap(err, "fill the page")
	}
	return newAnswer(status, typeHTML, out.Bytes()), nil
}

// notice renders an error page. It reveals nothing about the requested page. The widget's frame has
// no address bar, so a notice about an action links back to the page of that action.
func (v *visit) notice(status int, what string) (*answer, error) {
	of := view{Title: v.words.Text(what + ".title"), Hidden: true, Content: v.words.Text(what + ".text")}
	if end := strings.LastIndex(v.at, "/-/"); v.framed() && end > 0 && status != http.StatusNotFound {
		of.Frame.Back = v.at[:end]
	}
	return v.page(status, "notice", of)
}

// found renders a page with status 200.
func (v *visit) found(name string, of view) (*answer, error) { return v.page(http.StatusOK, name, of) }
