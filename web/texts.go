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

// pageNames are the templates of pages, each with the layout around it.
var pageNames = []string{
	"workspace", "board", "post", "roadmap", "changelog", "notice", "form", "done", "preferences",
	"frame_board", "frame_post", "frame_changelog", "frame_form", "frame_done",
}

// sameInFrame are pages of which the frame has another layout alone.
var sameInFrame = []string{"form", "done"}

// texts are the pages in a language.
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

// filesOf are the templates that make a page.
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

// view is what the layout shows.
type view struct {
	Lang, Title, Description string
	// Hidden keeps a page out of search engines: it shows a part of another one.
	Hidden           bool
	Canonical, Image string
	Feed             string
	// Home is the path of the organization's page, Site its name.
	Home, Site, Logo, Colors string
	// Board names the views of it.
	Board string
	Views []link
	// Frame is for pages in the widget.
	Frame   frameView
	Content any
}

// link leads to another page.
type link struct {
	Path, Title string
	Current     bool
}

const typeHTML = "text/html; charset=utf-8"

// page fills a template.
func (t *texts) page(status int, name string, v view) (*answer, error) {
	v.Lang = t.words.Tag.String()
	var out bytes.Buffer
	if err := t.pages[name].ExecuteTemplate(&out, "layout", v); err != nil {
		return nil, errors.Wrap(err, "fill the page")
	}
	return newAnswer(status, typeHTML, out.Bytes()), nil
}

// notice is a page about why there is no other. It says nothing of what was asked for. In the
// widget's frame, which has no address bar, one about an act leads back to what the act was for.
func (v *visit) notice(status int, what string) (*answer, error) {
	of := view{Title: v.words.Text(what + ".title"), Hidden: true, Content: v.words.Text(what + ".text")}
	if end := strings.LastIndex(v.at, "/-/"); v.framed() && end > 0 && status != http.StatusNotFound {
		of.Frame.Back = v.at[:end]
	}
	return v.page(status, "notice", of)
}

// found is a page of what was asked for.
func (v *visit) found(name string, of view) (*answer, error) { return v.page(http.StatusOK, name, of) }
