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

// Verdict is the result of a check of a URL's text. The zero Verdict means that the URL is valid.
type Verdict struct {
	// Class is InvalidURL or BlockedAddress, or empty when the URL is valid.
	Class Class
	// Reason is a fixed phrase for the owner of the URL, which follows the words "the URL". It
	// contains no part of the URL.
	Reason string
}

// OK reports whether the URL is valid.
func (v Verdict) OK() bool { return v.Class == "" }

func invalid(reason string) Verdict { return Verdict{InvalidURL, reason} }

var blocked = Verdict{BlockedAddress, "points to an address that is not public"}

// CheckURL checks the text of a URL, at registration or before an attempt.
//
// The verdict is InvalidURL in these cases:
//   - The URL isn't absolute, or is longer than 2048 characters.
//   - The scheme isn't https (or http, if that is allowed).
//   - The URL has user information, a fragment, or an impossible host or port.
//   - The URL contains a blank, a control character or a backslash.
//
// The verdict is BlockedAddress in these cases:
//   - The host is an address that Allowed refuses, in any spelling that some resolver accepts.
//   - The host is a name under localhost.
//
// CheckURL makes no DNS lookup. A valid URL may therefore still be refused when the connection is
// made.
func (g Guard) CheckURL(raw string) Verdict {
	_, verdict := g.target(raw)
	return verdict
}

// target runs CheckURL and also returns the URL to send to. Its host is in ASCII and lower case,
// exactly as it was checked, so that the dialer doesn't interpret the text again.
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

// checkText rejects characters that programs interpret in different ways.
func checkText(raw string) Verdict {
	switch {
	case !utf8.ValidString(raw):
		return invalid("must be UTF-8")
	case utf8.RuneCountInString(raw) > maxURL:
		return invalid("must have at most 2048 characters")
	case strings.ContainsFunc(raw, func(r rune) bool {
		// Browsers treat a backslash as a slash, which ends the host.
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
