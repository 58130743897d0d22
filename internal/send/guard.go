package send

import "net/netip"

// forbidden lists the networks that no attempt reaches unless the configuration allows them. It
// contains IANA's private, local, documentation, benchmark, multicast and reserved networks, and
// the metadata addresses of clouds. The predicates of net/netip cover about half of them.
var forbidden = prefixes(
	"0.0.0.0/8",        // this host; the kernel connects 0.0.0.0 to loopback
	"10.0.0.0/8",       // private
	"100.64.0.0/10",    // shared by carriers; metadata of some clouds
	"127.0.0.0/8",      // loopback
	"169.254.0.0/16",   // link-local; metadata of most clouds
	"172.16.0.0/12",    // private
	"192.0.0.0/24",     // protocol assignments
	"192.0.2.0/24",     // documentation
	"192.88.99.0/24",   // 6to4 relays, withdrawn
	"192.168.0.0/16",   // private
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"224.0.0.0/4",      // multicast
	"240.0.0.0/4",      // reserved, and broadcast
	"168.63.129.16/32", // the platform address of one cloud, public by number
	"::/8",             // unspecified, loopback, embedded IPv4, 64:ff9b::/32
	"64:ff9b::/32",     // translation; its ::/96 is checked by the embedded IPv4
	"100::/64",         // discard
	"2001::/23",        // protocol assignments, Teredo among them
	"2001:db8::/32",    // documentation
	"2002::/16",        // 6to4: contains an arbitrary IPv4 address
	"3fff::/20",        // documentation
	"5f00::/16",        // segment routing
	"fc00::/7",         // unique local
	"fe80::/10",        // link-local
	"fec0::/10",        // site-local, withdrawn
	"ff00::/8",         // multicast
)

// nat64 is the prefix of networks that translate IPv6 to IPv4. The last four bytes of such an
// address are the IPv4 address.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// Guard decides which URLs and addresses an attempt may go to. It holds no connection and makes no
// DNS lookup, so that a registration can use it, too. The zero Guard allows only public addresses
// over https. A Guard is safe for concurrent use.
type Guard struct {
	allow, deny []netip.Prefix
	allowHTTP   bool
}

// NewGuard returns a Guard that allows public addresses and those in allow. With allowHTTP it also
// allows the scheme http. A prefix in allow overrides the list of forbidden networks.
//
// An IPv4 address that is embedded in IPv6 is checked as IPv4. Only an IPv4 prefix allows it, or
// the same prefix written under ::ffff:0:0/96. An invalid prefix allows nothing.
func NewGuard(allow []netip.Prefix, allowHTTP bool) Guard {
	return Guard{allow: plain(allow), allowHTTP: allowHTTP}
}

// Denying returns a Guard that also forbids the networks, even where another prefix allows them. They
// are, for example, an operator's own networks with public addresses.
func (g Guard) Denying(networks []netip.Prefix) Guard {
	g.deny = plain(networks)
	return g
}

// plain returns the valid prefixes, masked, with IPv4 prefixes in their short form.
func plain(networks []netip.Prefix) (all []netip.Prefix) {
	for _, p := range networks {
		if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		if p.IsValid() {
			all = append(all, p.Masked())
		}
	}
	return all
}

// Allowed reports whether an attempt may connect to addr. An IPv4 address that is mapped into IPv6,
// or embedded in 64:ff9b::/96, has the same result as the plain IPv4 address. Zones are ignored.
// The zero Addr isn't allowed.
func (g Guard) Allowed(addr netip.Addr) bool {
	asIs, addr := addr.Unmap().WithZone(""), reachedAddress(addr)
	return addr.IsValid() && !within(g.deny, asIs) && !within(g.deny, addr) && (within(g.allow, addr) || !within(forbidden, addr))
}

// reachedAddress returns the address that a packet to addr finally reaches.
func reachedAddress(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("") // no prefix contains an address with a zone
	if nat64.Contains(addr) {
		bytes := addr.As16()
		return netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return addr
}

func within(list []netip.Prefix, addr netip.Addr) bool {
	for _, p := range list {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
