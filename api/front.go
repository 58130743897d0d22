package api

import (
	"bytes"
	"html/template"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/go-faster/errors"

	"earshot/internal/guide"
)

// Version is the version of the program, as the page at / shows it.
type Version string

// front is the page at /: the address that a newcomer opens first.
var front = template.Must(template.New("front").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Earshot</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{{.Style}}">
</head>
<body>
<div class="front">
<main>
<h1>Earshot</h1>
<p>A backend for product feedback. This is version {{.Version}}, and it is running.</p>
<ul>
<li><a href="{{.Links.guide}}">Guide</a>: how to use the API, with an example for each step</li>
<li><a href="{{.Links.reference}}">Reference</a>: every operation, to read and to try</li>
<li><a href="{{.Links.contract}}">OpenAPI</a>: the contract, for programs</li>
<li><a href="{{.Links.status}}">Status</a>: whether the service reaches Postgres and Temporal</li>
</ul>
</main>
</div>
</body>
</html>
`))

// serveFront serves the page at /, as JSON to a client that asks for JSON.
func (s *server) serveFront(r gin.IRouter, version Version) error {
	links := map[string]string{
		"guide": guide.Root, "reference": guide.Reference, "contract": "/v1/openapi.json", "status": "/readyz",
	}
	answer := gin.H{"name": "Earshot", "version": version, "links": links}
	var page bytes.Buffer
	if err := front.Execute(&page, map[string]any{"Version": version, "Links": links, "Style": guide.Style}); err != nil {
		return errors.Wrap(err, "render the page at /")
	}
	r.GET("/", public, func(c *gin.Context) {
		c.Header("Vary", "Accept")
		if c.NegotiateFormat(gin.MIMEHTML, gin.MIMEJSON) == gin.MIMEJSON {
			c.JSON(http.StatusOK, answer)
			return
		}
		document(typeHTML, guidePolicy, page.Bytes())(c)
	})
	return nil
}
