package web

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"earshot/web/palette"
)

// static is an embedded file. Its name contains its hash, so caches keep it for good.
type static struct {
	path, mediaType string
	content         []byte
}

//go:embed static/style.css
var styleSource []byte

//go:embed static/page.js
var moduleSource []byte

//go:embed static/icon.svg
var iconSource []byte

var (
	styleFile   = newStatic("style", "css", "text/css; charset=utf-8", styleSource)
	moduleFile  = newStatic("page", "js", "text/javascript; charset=utf-8", moduleSource)
	iconFile    = newStatic("icon", "svg", "image/svg+xml", iconSource)
	staticFiles = []static{styleFile, moduleFile, iconFile, frameStyleFile, frameModuleFile}
)

func newStatic(name, kind, mediaType string, content []byte) static {
	sum := sha256.Sum256(content)
	return static{Root + "-/" + name + "." + hex.EncodeToString(sum[:6]) + "." + kind, mediaType, content}
}

// forGood lets caches keep a file for good, because changed content gets another name.
const forGood = "public, max-age=31536000, immutable"

func serveStatic(w http.ResponseWriter, r *http.Request) {
	for _, f := range staticFiles {
		// After an update, an older page requests the file by its older name. It gets the current
		// file.
		if r.URL.Path == f.path || isOlder(f.path, r.URL.Path) {
			w.Header().Set("Content-Type", f.mediaType)
			if r.URL.Path == f.path {
				w.Header().Set("Cache-Control", forGood)
			}
			_, _ = w.Write(f.content)
			return
		}
	}
	http.NotFound(w, r)
}

// isOlder reports whether a path names the same file with another hash.
func isOlder(path, asked string) bool {
	a, b := strings.Split(path, "."), strings.Split(asked, ".")
	return len(a) == 3 && len(b) == 3 && a[0] == b[0] && a[2] == b[2]
}

var colorFile = regexp.MustCompile(`^([0-9a-f]{6})\.css$`)

// colorsPath is the path of the stylesheet for an organization's colour.
func colorsPath(color string) string {
	return Root + "-/colors/" + strings.TrimPrefix(color, "#") + ".css"
}

// serveColors serves a stylesheet for every colour, because the policy forbids inline styles.
func serveColors(w http.ResponseWriter, r *http.Request) {
	m := colorFile.FindStringSubmatch(r.PathValue("file"))
	if m == nil {
		http.NotFound(w, r)
		return
	}
	light, onLight := palette.Readable(palette.Parse(m[1]), palette.LightGrounds)
	dark, onDark := palette.Readable(palette.Parse(m[1]), palette.DarkGrounds)
	w.Header().Set("Content-Type", styleFile.mediaType)
	w.Header().Set("Cache-Control", forGood)
	_, _ = fmt.Fprintf(w, ":root { --accent: %s; --on-accent: %s }\n"+ //nolint:gosec // colours that were worked out
		"@media (prefers-color-scheme: dark) { :root { --accent: %s; --on-accent: %s } }\n", light, onLight, dark, onDark)
}
