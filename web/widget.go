package web

import (
	"context"
	_ "embed"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/etag"
	"earshot/internal/page"
	"earshot/web/palette"
)

// The widget shows a public board in pages of other sites. It consists of a script that these pages
// include, the frame that it opens, and the addresses that it calls. None of them uses cookies.

const (
	// ScriptPath is the address of the script. It never changes, because other sites include it.
	ScriptPath = "/widget.js"
	// FrameRoot is the path prefix of the pages in the frame.
	FrameRoot = "/w/"
	// WidgetRoot is the path prefix of the addresses that the script calls.
	WidgetRoot = "/widget/"
)

//go:embed static/widget.js
var widgetSource []byte

//go:embed static/frame.css
var frameStyleSource []byte

//go:embed static/frame.js
var frameModuleSource []byte

var (
	frameStyleFile  = newStatic("frame", "css", styleFile.mediaType, frameStyleSource)
	frameModuleFile = newStatic("frame", "js", moduleFile.mediaType, frameModuleSource)
	widgetTag       = etag.Of(widgetSource)
)

// Widget serves all parts of the widget. It exists for requests from other sites, so it has no
// general cross-site protection. Reading is public, and identifying checks the origin and a
// signature. Forms are accepted only from the frame's own pages.
func (p *Pages) Widget() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+ScriptPath, serveWidget)
	for pattern, one := range map[string]route{
		"{workspace}/{board}":             {produce: p.board, parameters: filters},
		"{workspace}/{board}/-/changelog": {produce: p.changelog, parameters: onlyPage},
		"{workspace}/{board}/-/sent":      {produce: p.frameSent},
		"{workspace}/{board}/{post}":      {produce: p.post, parameters: onlyPage},
	} {
		mux.Handle("GET "+FrameRoot+pattern, framed(p.serve(inFrame(one.produce), one.parameters...)))
	}
	for path, kind := range forms(FrameRoot) {
		mux.Handle("GET "+path, framed(p.acts(actsInFrame(p.form(kind)))))
		mux.Handle("POST "+path, framed(p.protection.Handler(p.acts(actsInFrame(p.submit(kind))))))
	}
	mux.Handle("GET "+WidgetRoot+"{workspace}/{board}", p.serveSettings())
	identify := newIdentifier(p)
	mux.Handle("POST "+WidgetRoot+"{workspace}/identify", identify)
	mux.Handle("OPTIONS "+WidgetRoot+"{workspace}/identify", identify)
	missing := p.serve(nothing)
	mux.Handle("GET "+FrameRoot, framed(missing))
	mux.Handle("GET "+WidgetRoot, missing)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Cache-Control", "no-cache")
		mux.ServeHTTP(w, r)
	})
}

// serveWidget serves the script. Other sites include the script by its name, so the name can't
// contain its hash. A new version therefore arrives within some minutes.
func serveWidget(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", moduleFile.mediaType)
	header.Set("Cache-Control", "public, max-age=300")
	forOthers(header)
	header.Set("Access-Control-Allow-Origin", "*") // for script tags with crossorigin
	header.Set("ETag", widgetTag)
	if etag.Has(r.Header, widgetTag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(widgetSource)
}

// forOthers lets pages of other origins include an answer.
func forOthers(header http.Header) { header.Set("Cross-Origin-Resource-Policy", "cross-origin") }

// framePolicy is the policy of a page that the given origins may frame.
func framePolicy(ancestors ...string) string {
	if len(ancestors) == 0 {
		return policy
	}
	return strings.Replace(policy, "frame-ancestors 'none'", "frame-ancestors "+strings.Join(ancestors, " "), 1)
}

// framed prepares pages for the frame. An isolated page may embed only pages that are isolated too.
// Our pages can afford that, because they load everything from this service.
func framed(serve http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forOthers(w.Header())
		w.Header().Set("Cross-Origin-Embedder-Policy", "require-corp")
		// Any site may frame a page that does not exist, because it has no buttons. An existing
		// page replaces this policy by that of its organization.
		w.Header().Set("Content-Security-Policy", framePolicy("*"))
		serve.ServeHTTP(w, r)
	})
}

// inFrame gives a page the policy of its organization, which allows only the configured origins.
func inFrame(produce maker) maker {
	return func(ctx context.Context, v *visit) (*answer, error) {
		a, err := produce(ctx, v)
		if a != nil {
			a.policy = framePolicy(v.org.WidgetOrigins...)
		}
		return a, err
	}
}

// widgetSettings is the configuration of the script.
type widgetSettings struct {
	Title  string        `json:"title"`
	Button string        `json:"button"`
	Unread string        `json:"unread"`
	Close  string        `json:"close"`
	Light  widgetColours `json:"light"`
	Dark   widgetColours `json:"dark"`
	// Changelog is true if the board has a changelog. Newest is the time of its latest entry; empty
	// if there is none.
	Changelog bool   `json:"changelog"`
	Newest    string `json:"newest"`
}

type widgetColours struct {
	Accent   string `json:"accent"`
	OnAccent string `json:"onAccent"`
}

// standardAccent is the accent colour in style.css.
const standardAccent = "1d4ed8"

// sharedFor is how long a browser caches the settings.
const sharedFor = time.Minute

func (p *Pages) settings(ctx context.Context, v *visit) (*answer, error) {
	b, err := p.onBoard(ctx, v)
	if err != nil {
		return nil, err
	}
	told := widgetSettings{
		Title: v.words.Text("widget.title", v.org.Name), Button: v.words.Text("widget.button"), Unread: v.words.Text("widget.unread"),
		Close: v.words.Text("widget.close"), Changelog: b.ShowChangelog,
	}
	accent := standardAccent
	if v.org.Color != nil {
		accent = strings.TrimPrefix(*v.org.Color, "#")
	}
	told.Light, told.Dark = coloursOf(accent, palette.LightGrounds), coloursOf(accent, palette.DarkGrounds)
	if b.ShowChangelog {
		one := 1
		latest, err := p.Feedback.PublicEntries(ctx, b, page.Query{Limit: &one, Memory: v.memory})
		if err != nil {
			return nil, err
		}
		if len(latest.Items) > 0 {
			told.Newest = moment(*latest.Items[0].PublishedAt)
		}
	}
	body, err := json.Marshal(told)
	if err != nil {
		return nil, errors.Wrap(err, "encode the widget's settings")
	}
	a := newAnswer(http.StatusOK, "application/json", body)
	a.maxAge, a.readers = sharedFor, append([]string{}, v.org.WidgetOrigins...)
	return a, nil
}

func coloursOf(accent string, grounds []palette.RGB) widgetColours {
	shown, on := palette.Readable(palette.Parse(accent), grounds)
	return widgetColours{shown.String(), on.String()}
}

// moment formats a time so that it can be compared as a text.
func moment(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }

// serveSettings serves the settings to pages of allowed origins, and to our own.
func (p *Pages) serveSettings() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, a := p.answerTo(r, p.settings)
		origin := r.Header.Get("Origin")
		w.Header().Add("Vary", "Origin")
		switch {
		case origin == "" || a.readers == nil:
		case slices.Contains(a.readers, origin):
			w.Header().Set("Access-Control-Allow-Origin", origin)
		default:
			refuse(w, errOrigin())
			return
		}
		forOthers(w.Header())
		p.send(w, r, v, a)
	})
}
