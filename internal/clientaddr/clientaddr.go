// Package clientaddr tells where a request comes from, behind whatever proxies.
package clientaddr

import (
	"net/http"
	"net/netip"
	"strings"
)

// Of is where a request comes from: the peer of the connection, or what
// trusted proxies say in X-Forwarded-For. Each proxy adds its peer at the right, so
// it is read from there, up to the first address that is nobody's whom we trust;
// what stands left of it anybody may have made up. The zero Addr is a peer that
// isn't known.
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

// hop reads an entry of X-Forwarded-For, to which some proxies add the port.
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

// Network is what one client has of addresses: one of IPv4, a /64 of IPv6.
func Network(a netip.Addr) netip.Prefix {
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // the zero Addr's is the zero Prefix
	return p
}
