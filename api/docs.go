package api

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
	"github.com/go-faster/errors"

	"earshot/internal/etag"
	"earshot/internal/guide"
)

// viewer is the web page for the contract: the bundle of Stoplight Elements and the page around it
// (api/viewer/README.md). It is part of the binary, so browsers load nothing from other servers.
//
//go:embed viewer/page.html viewer/page.css viewer/page.js viewer/elements.js.gz viewer/elements.css.gz
//go:embed viewer/LICENSE viewer/THIRD_PARTY.txt
var viewer embed.FS

const (
	// elementsStyles are the hashes of the styles that Elements adds to a page. The second and the third
	// belong to the editor of a request's body.
	elementsStyles = "'sha256-MBVp6JYxbC/wICelYC6eULCRpgi9kGezXXSaq/TS2+I=' " +
		"'sha256-40iiqMCd92gEkTDo77tABEiJ83Vil54BR3JPvnldhrA=' 'sha256-dycEEOLZbQ6Q63plZ3jYmnhvaKmY6KdKRX5kMcuYihw='"
	// documentPolicy is the part of the policies that the reference and the guide share. It allows
	// files of this server and blocks injected content.
	documentPolicy  = "default-src 'none'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
	referencePolicy = documentPolicy + "connect-src 'self'; script-src 'self'; style-src 'self' " + elementsStyles
	guidePolicy     = documentPolicy + "style-src 'self'"
)

const (
	typeHTML       = "text/html; charset=utf-8"
	typeCSS        = "text/css; charset=utf-8"
	typeJavaScript = "text/javascript; charset=utf-8"
	typeText       = "text/plain; charset=utf-8"
)

// viewerFiles are the files below the reference that are served unchanged, with their types. The
// licences must be distributed with the bundle.
var viewerFiles = map[string]string{
	"page.css": typeCSS, "page.js": typeJavaScript, "LICENSE": typeText, "THIRD_PARTY.txt": typeText,
}

// serveDocs serves the contract for programs, the reference for people, and the guide. They need no
// key and no other server.
func (s *server) serveDocs(r gin.IRouter) error {
	r.GET("/v1/openapi.json", public, func(c *gin.Context) {
		c.Data(http.StatusOK, "application/json", s.contract.JSON)
	})
	page, err := viewer.ReadFile("viewer/page.html")
	if err != nil {
		return errors.Wrap(err, "read the reference's page")
	}
	r.GET(guide.Reference, public, document(typeHTML, referencePolicy, page))
	for name, kind := range viewerFiles {
		content, err := viewer.ReadFile("viewer/" + name)
		if err != nil {
			return errors.Wrap(err, "read what belongs to the reference's page")
		}
		r.GET(guide.Reference+"/"+name, public, document(kind, referencePolicy, content))
	}
	for name, kind := range map[string]string{"elements.js": typeJavaScript, "elements.css": typeCSS} {
		compressed, err := viewer.ReadFile("viewer/" + name + ".gz")
		if err != nil {
			return errors.Wrap(err, "read the reference's viewer")
		}
		r.GET(guide.Reference+"/"+name, public, bundled(kind, compressed))
	}
	return s.serveGuide(r)
}

// document answers with a page, or with a file of a page, under its policy.
func document(kind, policy string, content []byte) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Header(policyHeader, policy)
		c.Data(http.StatusOK, kind, content)
	}
}

// bundled answers with a file that is stored compressed. Clients that accept gzip, such as every
// browser, get the compressed form. The tag is weak because it stands for both encodings.
func bundled(kind string, compressed []byte) gin.HandlerFunc {
	plain := sync.OnceValues(func() ([]byte, error) {
		r, err := gzip.NewReader(bytes.NewReader(compressed))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	})
	tag := etag.Of(compressed)
	return func(c *gin.Context) {
		c.Header("Vary", "Accept-Encoding")
		c.Header(etagHeader, "W/"+tag)
		if etag.Has(c.Request.Header, tag) {
			c.Status(http.StatusNotModified)
			return
		}
		if strings.Contains(c.GetHeader("Accept-Encoding"), "gzip") {
			c.Header("Content-Encoding", "gzip")
			c.Data(http.StatusOK, kind, compressed)
			return
		}
		content, err := plain()
		if err != nil {
			panic(err) // the binary is damaged; the recovery answers and logs
		}
		c.Data(http.StatusOK, kind, content)
	}
}
