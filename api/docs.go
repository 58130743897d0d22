package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/swaggest/swgui/v5emb"
)

// serveDocs shows the contract, for programs and for people, without a key and
// without a network: the viewer is part of the binary.
func (s *server) serveDocs(r gin.IRouter) {
	r.GET("/v1/openapi.json", public, func(c *gin.Context) {
		c.Data(http.StatusOK, "application/json", s.contract.json)
	})
	viewer := v5emb.New("Feedback API", "/v1/openapi.json", "/v1/docs")
	page := rendered(viewer, "/v1/docs")
	policy := docsPolicy(page)
	r.GET("/v1/docs", public, func(c *gin.Context) {
		c.Header(policyHeader, policy)
		c.Data(http.StatusOK, "text/html; charset=utf-8", page)
	})
	r.GET("/v1/docs/*file", public, gin.WrapH(viewer))
}

// docsPolicy lets the page run its own files and the scripts and styles that stand
// in it, and nothing that somebody might bring into it.
func docsPolicy(page []byte) string {
	return strings.Join([]string{
		"default-src 'none'", "connect-src 'self'", "img-src 'self' data:",
		"script-src 'self'" + hashes(page, "script"),
		"style-src 'self'" + hashes(page, "style"),
		"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
	}, "; ")
}

// hashes are the CSP sources of what stands between the page's tags of a name.
func hashes(page []byte, tag string) (sources string) {
	between := regexp.MustCompile(`(?s)<` + tag + `(?: type="[^"]*")?>(.*?)</` + tag + `>`)
	for _, found := range between.FindAllSubmatch(page, -1) {
		hash := sha256.Sum256(found[1])
		sources += " 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
	}
	return sources
}

// rendered is what a handler answers to GET; the page is the same for everybody.
func rendered(h http.Handler, path string) []byte {
	request, _ := http.NewRequest(http.MethodGet, path, http.NoBody) //nolint:noctx // goes nowhere
	w := &buffer{header: http.Header{}}
	h.ServeHTTP(w, request)
	return w.Bytes()
}

type buffer struct {
	bytes.Buffer
	header http.Header
}

func (b *buffer) Header() http.Header { return b.header }
func (b *buffer) WriteHeader(int)     {}
