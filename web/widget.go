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

// The widget shows a public board in pages of others. It is a script, which they include, the
// frame that it opens, and what it asks for; and nothing of it has cookies.

const (
	// ScriptPath is where pages of others find the script. Its name stays.
	ScriptPath = "/widget.js"
	// FrameRoot is the path that the pages in the frame are below.
	FrameRoot = "/w/"
	// WidgetRoot is the path that what the script asks for is below.
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

// Widget serves all of it. Requests from pages of others are what it is for, so nothing refuses
// these in general: reading is everybody's, and what identifies checks the origin and a signature.
// Forms are sent by the frame's own pages, and refused from all others.
func (p *Pages) Widget() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+ScriptPath, serveWidget)
	for pattern, produce := range map[string]maker{
		"{workspace}/{board}":             p.frameBoard,
		"{workspace}/{board}/-/changelog": p.frameChangelog,
		"{workspace}/{board}/-/sent":      p.frameSent,
		"{workspace}/{board}/{post}":      p.framePost,
	} {
		mux.Handle("GET "+FrameRoot+pattern, framed(p.serve(inFrame(produce))))
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

// serveWidget has the script. A change of it is everywhere some minutes later: its name can't
// hold its hash, as it stands in pages of others.
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

// framePolicy is the policy of a page that others may show in a frame.
func framePolicy(ancestors ...string) string {
	if len(ancestors) == 0 {
		return policy
	}
	return strings.Replace(policy, "frame-ancestors 'none'", "frame-ancestors "+strings.Join(ancestors, " "), 1)
}

// framed is for pages in the frame. A page that wants its own isolation may only hold those that
// want it too, which costs ours nothing: all that they load is from here.
func framed(serve http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forOthers(w.Header())
		w.Header().Set("Cross-Origin-Embedder-Policy", "require-corp")
		// That something isn't there may be shown by anybody: there is nothing to press. A page
		// that is there brings the policy of its organization.
		w.Header().Set("Content-Security-Policy", framePolicy("*"))
		serve.ServeHTTP(w, r)
	})
}

// inFrame gives a page the policy of its organization: only the origins that it has allowed.
func inFrame(produce maker) maker {
	return func(ctx context.Context, v *visit) (*answer, error) {
		a, err := produce(ctx, v)
		if a != nil {
			a.policy = framePolicy(v.org.WidgetOrigins...)
		}
		return a, err
	}
}

// widgetSettings is what the script is told.
type widgetSettings struct {
	Title  string        `json:"title"`
	Button string        `json:"button"`
	Unread string        `json:"unread"`
	Close  string        `json:"close"`
	Light  widgetColours `json:"light"`
	Dark   widgetColours `json:"dark"`
	// Changelog is whether there is one, and Newest the moment of its latest entry; empty is none.
	Changelog bool   `json:"changelog"`
	Newest    string `json:"newest"`
}

type widgetColours struct {
	Accent   string `json:"accent"`
	OnAccent string `json:"onAccent"`
}

// standardAccent is that of style.css.
const standardAccent = "1d4ed8"

// sharedFor is how long a page of others keeps what the script was told.
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

// moment is one that can be compared as a text.
func moment(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }

// serveSettings tells them to pages of allowed origins, and to ours.
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
