package send

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxURL is the length of a webhook's URL in characters (specification,
// Limits).
const maxURL = 2048

// Verdict is what the text of a URL shows. The zero Verdict finds no fault.
type Verdict struct {
	// Class is InvalidURL or BlockedAddress, or empty when nothing is wrong.
	Class Class
	// Reason is a fixed phrase for the user whose URL it is, to follow the
	// words "the URL". It holds no part of the URL.
	Reason string
}

// OK reports whether nothing is wrong.
func (v Verdict) OK() bool { return v.Class == "" }

func invalid(reason string) Verdict { return Verdict{InvalidURL, reason} }

var blocked = Verdict{BlockedAddress, "points to an address that is not public"}

// CheckURL judges the text of a URL, at registration or before an attempt.
// InvalidURL is for one that is not absolute, not of the scheme https (or
// http, where that is allowed), longer than 2048 characters, or that has user
// information, a fragment, an impossible host or port, a blank, a control
// character or a backslash. BlockedAddress is for a host that is an address
// which Allowed refuses, in any spelling that some resolver understands, or a
// name under localhost.
//
// It looks no name up: a URL without fault may still be refused when the
// connection is made.
func (g Guard) CheckURL(raw string) Verdict {
	_, verdict := g.target(raw)
	return verdict
}

// target is CheckURL with the URL to send to: host in ASCII and lower case, as
// it was judged, so that nothing between here and the dialer reads it anew.
func (g Guard) target(raw string) (*url.URL, Verdict) {
	if v := checkText(raw); !v.OK() {
		return nil, v
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, invalid("cannot be parsed")
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, invalid("must be absolute and begin with https://")
	case u.Scheme == "http" && !g.allowHTTP:
		return nil, invalid("must begin with https://")
	case u.Opaque != "" || u.Hostname() == "":
		return nil, invalid("must name a host")
	case u.User != nil:
		return nil, invalid("must not hold a user name or password")
	case strings.Contains(raw, "#"):
		return nil, invalid("must not have a fragment")
	}
	port, ok := checkPort(u.Port())
	if !ok {
		return nil, invalid("must have a port from 1 to 65535, or none")
	}
	host, verdict := g.host(u.Hostname(), strings.HasPrefix(u.Host, "["))
	if !verdict.OK() {
		return nil, verdict
	}
	u.Host = joinHost(host, port)
	return u, Verdict{}
}

// checkText refuses the characters that programs read in different ways.
func checkText(raw string) Verdict {
	switch {
	case !utf8.ValidString(raw):
		return invalid("must be UTF-8")
	case utf8.RuneCountInString(raw) > maxURL:
		return invalid("must have at most 2048 characters")
	case strings.ContainsFunc(raw, func(r rune) bool {
		// A browser takes a backslash for a slash, and ends the host there.
		return unicode.IsControl(r) || unicode.IsSpace(r) || r == '\\'
	}):
		return invalid("must not hold blanks, control characters or backslashes")
	}
	return Verdict{}
}

// checkPort returns the port without leading zeros, or "" when none was given.
func checkPort(text string) (string, bool) {
	if text == "" {
		return "", true
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return "", false
	}
	return strconv.FormatUint(port, 10), true
}

func joinHost(host, port string) string {
	if port != "" {
		return net.JoinHostPort(host, port)
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
		return "[" + host + "]"
	}
	return host
}
