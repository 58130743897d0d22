package send

import (
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Bounds of a name (RFC 1035, section 2.3.4, in characters as written).
const (
	maxName  = 253
	maxLabel = 63
)

var (
	loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loopback6 = netip.IPv6Loopback()
)

// host judges the host of a URL, without brackets and port, and returns it in
// ASCII and lower case. bracketed says that it stood in brackets and must be
// IPv6.
func (g Guard) host(text string, bracketed bool) (string, Verdict) {
	if bracketed {
		return g.literal(text)
	}
	// Circled digits, full-width letters and the like become plain ones here,
	// by the same rules as in net/http.
	name, err := idna.Lookup.ToASCII(text)
	if isASCII(text) {
		name, err = text, nil // net/http leaves these alone, underscores and all
	}
	if err != nil {
		return "", invalid("must name a valid host")
	}
	name = strings.ToLower(name)
	bare := strings.TrimSuffix(name, ".")
	if !validName(bare) {
		return "", invalid("must name a valid host")
	}
	if isNumber(bare) {
		return g.number(name, bare)
	}
	if isLocalhost(bare) && !g.Allowed(loopback4) && !g.Allowed(loopback6) {
		return "", blocked
	}
	return name, Verdict{}
}

func (g Guard) literal(text string) (string, Verdict) {
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil || addr.Is4():
		return "", invalid("must name a valid host")
	case !g.Allowed(addr):
		return "", blocked
	case addr.Zone() != "":
		// A zone is the name of an interface of our machine.
		return "", invalid("must not have a zone in its address")
	}
	return addr.Unmap().String(), Verdict{}
}

// number judges a host whose last label is a number. It is an address or
// nothing: no such top-level domain can exist. The spellings other than four
// plain decimals depend on who reads them, so they are refused even where the
// address is public.
func (g Guard) number(name, bare string) (string, Verdict) {
	addr, ok := legacyIPv4(bare)
	switch {
	case ok && !g.Allowed(addr):
		return "", blocked
	case !ok || addr.String() != name:
		return "", invalid("must write an IPv4 address as four decimal numbers")
	}
	return name, Verdict{}
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > 0x7f })
}

// validName wants letters, digits, hyphens and underscores: url.Parse lets
// characters through that mean something to a shell or a header.
func validName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel || strings.ContainsFunc(label, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		}) {
			return false
		}
	}
	return true
}

// isLocalhost knows the names that resolvers keep on the machine (RFC 6761,
// section 6.3).
func isLocalhost(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// isNumber reports whether the last label would be read as a number: all
// digits, or 0x and hex digits.
func isNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	digits, isHex := strings.CutPrefix(last, "0x")
	return isHex && strings.Trim(digits, "0123456789abcdef") == ""
}

// legacyIPv4 reads an address as the C function inet_aton does, which some
// resolvers still ask: one to four parts, each decimal, octal after a 0, or
// hex after 0x, of which the last fills all the bytes that remain.
func legacyIPv4(text string) (netip.Addr, bool) {
	parts := strings.Split(text, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		n, ok := legacyPart(part)
		if !ok || n >= 1<<bits {
			return netip.Addr{}, false
		}
		value = value<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

func legacyPart(part string) (uint64, bool) {
	base := 10
	if digits, isHex := strings.CutPrefix(part, "0x"); isHex {
		if digits == "" {
			return 0, true // "0x" alone is read as zero
		}
		part, base = digits, 16
	} else if len(part) > 1 && part[0] == '0' {
		part, base = part[1:], 8
	}
	n, err := strconv.ParseUint(part, base, 32)
	return n, err == nil
}
