// Package clientaddr finds the address of the client behind any number of proxies.
package clientaddr

import (
	"net/http"
	"net/netip"
	"strings"
)

// Of returns the address of the client: the peer of the connection, or the address that trusted
// proxies report in X-Forwarded-For.
//
// Each proxy appends its peer to the header. Of therefore reads it from the right, up to the first
// address outside of the trusted networks. A client can forge the entries to the left of that
// address. For an unknown peer, Of returns the zero Addr.
func Of(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	client := peer.Addr().Unmap().WithZone("")
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && isIn(client, trusted); i-- {
		before, ok := hop(strings.TrimSpace(hops[i]))
		if !ok {
			break
		}
		client = before.Unmap().WithZone("")
	}
	return client
}

// hop parses an entry of X-Forwarded-For. Some proxies add the port.
func hop(entry string) (a netip.Addr, ok bool) {
	if a, err := netip.ParseAddr(entry); err == nil {
		return a, true
	}
	p, err := netip.ParseAddrPort(entry)
	return p.Addr(), err == nil
}

func isIn(a netip.Addr, networks []netip.Prefix) bool {
	for _, n := range networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// Network returns the range of addresses that belongs to one client: a single IPv4 address or an
// IPv6 /64.
func Network(a netip.Addr) netip.Prefix {
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // the zero Addr results in the zero Prefix
	return p
}
