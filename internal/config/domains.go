package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/go-faster/errors"
	"golang.org/x/net/idna"
)

// Domains are names of domains, each with all below it. None is the zero value.
type Domains struct{ names map[string]struct{} }

var domainPattern = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9-]{1,63}$`)

// UnmarshalText reads names that stand between commas or white space: lists of disposable domains
// have one a line.
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

// plainDomain is how a name is compared: in ASCII, without the dot of the root.
func plainDomain(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if ascii, err := idna.ToASCII(name); err == nil {
		return ascii
	}
	return name
}

// Has reports whether a name is one of them, or below one.
func (d Domains) Has(name string) bool {
	for name = plainDomain(name); name != ""; _, name, _ = strings.Cut(name, ".") {
		if _, ok := d.names[name]; ok {
			return true
		}
	}
	return false
}

// String tells how many there are: lists have a hundred thousand.
func (d Domains) String() string { return fmt.Sprintf("%d domains", len(d.names)) }
