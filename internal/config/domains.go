package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/go-faster/errors"
	"golang.org/x/net/idna"
)

// Domains is a set of domains, each including its subdomains. The zero value is empty.
type Domains struct{ names map[string]struct{} }

var domainPattern = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9-]{1,63}$`)

// UnmarshalText reads names separated by commas or white space. Published lists of disposable
// domains have one name per line.
func (d *Domains) UnmarshalText(text []byte) error {
	d.names = map[string]struct{}{}
	for _, given := range strings.FieldsFunc(string(text), func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		name := plainDomain(given)
		if !domainPattern.MatchString(name) {
			return errors.Errorf("has %.80q, which isn't the name of a domain", given)
		}
		d.names[name] = struct{}{}
	}
	return nil
}

// plainDomain normalizes a name for comparison: lower-case ASCII, without the final dot.
func plainDomain(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if ascii, err := idna.ToASCII(name); err == nil {
		return ascii
	}
	return name
}

// Has reports whether the set contains the domain or one of its parents.
func (d Domains) Has(name string) bool {
	for name = plainDomain(name); name != ""; _, name, _ = strings.Cut(name, ".") {
		if _, ok := d.names[name]; ok {
			return true
		}
	}
	return false
}

// String returns only the number of domains, because a list may have a hundred thousand.
func (d Domains) String() string { return fmt.Sprintf("%d domains", len(d.names)) }
