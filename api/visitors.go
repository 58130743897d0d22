package api

import (
	"net/http"
	"net/netip"
)

// Network is where a request comes from, as limits of clients go by it.
func (a *API) Network(r *http.Request) netip.Prefix {
	return clientNetwork(clientAddress(r, a.server.proxies))
}
