package send

import (
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// maxName and maxLabel limit a name (RFC 1035, section 2.3.4, in characters as written).
const (
	maxName  = 253
	maxLabel = 63
)

var (
	loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loopback6 = netip.IPv6Loopback()
)

// host checks the host of a URL, without brackets and port, and returns it in ASCII and lower case.
// A bracketed host must be IPv6.
func (g Guard) host(text string, bracketed bool) (string, Verdict) {
	if bracketed {
		return g.literal(text)
	}
	// Circled digits, full-width letters and similar characters become plain ones here, by the same
	// rules as in net/http.
	name, err := idna.Lookup.ToASCII(text)
	if isASCII(text) {
		name, err = text, nil // net/http leaves ASCII unchanged, including underscores
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
		// A zone names a network interface of our own machine.
		return "", invalid("must not have a zone in its address")
	}
	return addr.Unmap().String(), Verdict{}
}

// number checks a host whose last label is a number. Such a host is an address or invalid, because
// no such top-level domain exists. Spellings other than four plain decimals depend on the resolver,
// so they are refused even if the address is public.
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

// validName accepts letters, digits, hyphens and underscores. url.Parse also accepts characters
// with a meaning in a shell or a header.
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

// isLocalhost reports names that resolvers map to the machine itself (RFC 6761, section 6.3).
func isLocalhost(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// isNumber reports whether resolvers read the last label as a number: all digits, or 0x and hex
// digits.
func isNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	digits, isHex := strings.CutPrefix(last, "0x")
	return isHex && strings.Trim(digits, "0123456789abcdef") == ""
}

// legacyIPv4 parses an address as the C function inet_aton does, which some resolvers still use. It
// has one to four parts: decimal, octal after a 0, or hex after 0x. The last part fills the
// remaining bytes.
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
