// Package slug makes the readable names in URLs.
package slug

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/go-faster/errors"
	"github.com/gosimple/slug"

	"earshot/internal/problem"
)

var pattern = regexp.MustCompile(`^[a-z0-9]+(?:-[a-z0-9]+)*$`)

// Valid reports whether a text has the form of a slug.
func Valid(text string) bool { return pattern.MatchString(text) }

// Check validates a slug that a caller has chosen. It may have up to high characters.
func Check(bad *problem.Fields, value string, high int) {
	bad.Text("slug", value, 1, high)
	if value != "" && !Valid(value) {
		bad.Add("slug", "pattern", "must be lower-case letters and digits in groups joined by single hyphens")
	}
}

// From makes a slug of up to high characters from a title. The fallback is for titles without a
// letter or digit.
func From(title, fallback string, high int) string {
	s := slug.Make(title)
	// The library keeps underscores, which the pattern doesn't allow.
	s = strings.Trim(strings.ReplaceAll(s, "_", "-"), "-")
	for strings.Contains(s, "--") {
		s = strings.ReplaceAll(s, "--", "-")
	}
	if s == "" {
		s = fallback
	}
	return cut(s, high)
}

func cut(s string, high int) string {
	if len(s) > high {
		s = s[:high]
	}
	return strings.TrimRight(s, "-")
}

const (
	// rounds limits the number of lost races for the same slug.
	rounds = 100
	// tries is the number of slugs that a round tries from the end on. Each failure means that
	// another request took the slug. After that many failures the end has moved, and the next round
	// searches for it again.
	tries = 4
)

// Free inserts a row with the first free slug of base, base-2, base-3, … The function insert
// reports whether the row was inserted. If base has many rows, Free finds the end with a few
// queries by doubling and then halving.
func Free(base string, high int, taken func(slug string) (bool, error), insert func(slug string) (bool, error)) error {
	numbered := func(n int) string { return Numbered(base, high, n) }
	ok, err := insert(base)
	if ok || err != nil {
		return err
	}
	for range rounds {
		end, err := FirstFree(func(n int) (bool, error) { return taken(numbered(n)) })
		if err != nil {
			return err
		}
		for n := end; n < end+tries; n++ {
			ok, err := insert(numbered(n))
			if ok || err != nil {
				return err
			}
		}
	}
	return errors.Errorf("no free slug after %d rounds", rounds)
}

// Numbered returns the slug number n of base, base-2, base-3, …
func Numbered(base string, high, n int) string {
	if n == 1 {
		return base
	}
	suffix := fmt.Sprintf("-%d", n)
	return cut(base, high-len(suffix)) + suffix
}

// FirstFree returns a free number above 1 whose predecessor is taken.
func FirstFree(taken func(n int) (bool, error)) (int, error) {
	low, top := 1, 2
	for {
		used, err := taken(top)
		if err != nil {
			return 0, err
		}
		if !used {
			break
		}
		low, top = top, top*2
	}
	for top-low > 1 {
		middle := (low + top) / 2
		used, err := taken(middle)
		if err != nil {
			return 0, err
		}
		if used {
			low = middle
		} else {
			top = middle
		}
	}
	return top, nil
}
