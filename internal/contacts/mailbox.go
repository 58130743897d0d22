package contacts

import (
	"slices"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// provider has the rules by which a large provider delivers different spellings to one mailbox, as its own
// help pages document them.
type provider struct {
	// domain is the domain in the plain spelling. Domains are its other names.
	domain  string
	domains []string
	// ignored are characters of the local part that make no difference.
	ignored string
	// tag is the sign, besides plus, that starts a tag at the end of the local part.
	tag string
	// same has a character and the equivalent that replaces it.
	same [2]string
	// subdomains is true if mail to anything@name.domain is delivered to name@domain.
	subdomains bool
}

var providers = []provider{
	{domain: "gmail.com", domains: []string{"googlemail.com"}, ignored: "."},
	{domain: "icloud.com", domains: []string{"me.com", "mac.com"}},
	{domain: "proton.me", domains: []string{"protonmail.com", "protonmail.ch", "pm.me"}, ignored: ".-_"},
	// Yahoo's names have no hyphen. A hyphen starts the keyword of a disposable address.
	{domain: "yahoo.com", tag: "-"},
	{domain: "fastmail.com", subdomains: true},
	{
		domain: "yandex.ru", domains: []string{"ya.ru", "yandex.com", "yandex.by", "yandex.kz", "yandex.ua", "yandex.com.tr"},
		same: [2]string{".", "-"},
	},
}

// Mailbox returns the plain spelling of an address: all spellings that lead to one mailbox have the same
// one. For example, it is quentin@gmail.com for Q.uentin+news@googlemail.com.
//
// A tag behind a plus sign is removed for every domain, because the large providers also serve the domains
// of their customers. Use the plain spelling only to compare: e-mails go to the address as it was written.
func Mailbox(email string) string {
	local, host, found := strings.Cut(normalEmail(norm.NFKC.String(email)), "@")
	if !found {
		return email
	}
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii
	}
	local = withoutTag(local, "+")
	for i := range providers {
		if p := &providers[i]; p.serves(host) {
			return p.plain(local, host)
		}
	}
	return local + "@" + host
}

func (p *provider) serves(host string) bool {
	return host == p.domain || slices.Contains(p.domains, host) ||
		p.subdomains && strings.HasSuffix(host, "."+p.domain) && strings.Count(host, ".") == strings.Count(p.domain, ".")+1
}

func (p *provider) plain(local, host string) string {
	if name, below := strings.CutSuffix(host, "."+p.domain); below {
		local = name
	}
	if p.tag != "" {
		local = withoutTag(local, p.tag)
	}
	if p.same[0] != "" {
		local = strings.ReplaceAll(local, p.same[0], p.same[1])
	}
	short := strings.Map(func(r rune) rune {
		if strings.ContainsRune(p.ignored, r) {
			return -1
		}
		return r
	}, local)
	if short == "" { // no mailbox has such a name; two such names are not one mailbox
		short = local
	}
	return short + "@" + p.domain
}

// withoutTag cuts off a tag. A local part that begins with the sign stays, because it would have no
// name without it.
func withoutTag(local, sign string) string {
	if at := strings.Index(local, sign); at > 0 {
		return local[:at]
	}
	return local
}

// HashMailbox is HashEmail of the address's mailbox.
func HashMailbox(key []byte, email string) []byte { return HashEmail(key, Mailbox(email)) }
