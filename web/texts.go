package web

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"golang.org/x/text/language"

	"earshot/web/messages"
)

//go:embed templates
var templateFiles embed.FS

// pageNames are the templates of pages. The layout surrounds each of them.
var pageNames = []string{
	"workspace", "board", "post", "roadmap", "changelog", "notice", "form", "done", "preferences",
	"frame_board", "frame_post", "frame_changelog", "frame_form", "frame_done",
}

// sameInFrame are the pages whose frame version differs only in the layout.
var sameInFrame = []string{"form", "done"}

// texts holds the messages and templates of one language.
type texts struct {
	words *messages.Words
	pages map[string]*template.Template
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
	t := &texts{words: w, pages: map[string]*template.Template{}}
	for _, name := range pageNames {
		t.pages[name], err = template.New(name).Funcs(functions).ParseFS(templateFiles, filesOf(name)...)
		if err != nil {
			return nil, errors.Wrap(err, "parse the templates")
		}
	}
	return t, nil
}

// filesOf returns the template files of a page.
func filesOf(name string) []string {
	of, framed := strings.CutPrefix(name, "frame_")
	if !framed {
		return []string{"templates/layout.html", "templates/" + name + ".html"}
	}
	if slices.Contains(sameInFrame, of) {
		name = of
	}
	return []string{"templates/layout.html", "templates/frame.html", "templates/" + name + ".html"}
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

// page renders a template.
func (t *texts) page(status int, name string, v view) (*answer, error) {
	v.Lang = t.words.Tag.String()
	var out bytes.Buffer
	if err := t.pages[name].ExecuteTemplate(&out, "layout", v); err != nil {
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
