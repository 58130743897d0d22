package api

import (
	"encoding/json"
	"net/http"
	"net/netip"

	"github.com/gin-gonic/gin"

	"earshot/internal/clientaddr"
	"earshot/internal/problem"
)

// MountPages serves pages that need no key at the given paths, for all methods. Their requests
// are named, logged, traced and counted like those of operations.
func (a *API) MountPages(pages http.Handler, paths ...string) {
	for _, path := range paths {
		a.engine.Any(path, func(c *gin.Context) { pages.ServeHTTP(c.Writer, c.Request) })
	}
}

// Network returns the client's network for a page's request. Limits for clients use it.
func (a *API) Network(r *http.Request) netip.Prefix {
	return clientaddr.Network(clientaddr.Of(r, a.server.proxies))
}

// WriteProblem answers a page's request with an error in the envelope of operations.
func WriteProblem(w http.ResponseWriter, p *problem.Error) {
	body, err := json.Marshal(errorAnswer{errorBody{p.Code, p.Message, p.Details}})
	if err != nil {
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/json; charset=utf-8")
	if wait, ok := retryAfter[p.Code]; ok {
		header.Set("Retry-After", wait)
	}
	w.WriteHeader(statuses[p.Code])
	_, _ = w.Write(body) // the client may have left
}
