package api

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// MountPages serves pages that need no key at a path and everything below it, whatever the
// method. Their requests are named, logged, traced and counted like those of operations.
func (a *API) MountPages(pages http.Handler, paths ...string) {
	for _, path := range paths {
		a.engine.Any(path, func(c *gin.Context) { pages.ServeHTTP(c.Writer, c.Request) })
	}
}
