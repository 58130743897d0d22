package feedback

import (
	"fmt"
	"strings"

	"github.com/go-faster/errors"
	"github.com/gosimple/slug"
)

// slugFrom makes a slug of a title; fallback is for titles without a letter.
func slugFrom(title, fallback string, high int) string {
	s := slug.Make(title)
	// The library keeps underscores, which our pattern doesn't know.
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
	// slugRounds bounds how often a race for the same slug is lost before we give up.
	slugRounds = 100
	// slugTries are the slugs from the end on that are tried in a round. Each loss
	// means that another request won; when that happens more often than we try, the
	// end has moved on and is looked for again.
	slugTries = 4
)

// freeSlug inserts under base, base-2, base-3, … whichever is free first. insert
// reports whether the row went in. With many rows under one base it finds the
// end by doubling, then halving, so it asks a handful of times, not thousands.
func freeSlug(base string, high int, taken func(slug string) (bool, error), insert func(slug string) (bool, error)) error {
	numbered := func(n int) string {
		if n == 1 {
			return base
		}
		suffix := fmt.Sprintf("-%d", n)
		return cut(base, high-len(suffix)) + suffix
	}
	ok, err := insert(base)
	if ok || err != nil {
		return err
	}
	for range slugRounds {
		end, err := firstFree(func(n int) (bool, error) { return taken(numbered(n)) })
		if err != nil {
			return err
		}
		for n := end; n < end+slugTries; n++ {
			ok, err := insert(numbered(n))
			if ok || err != nil {
				return err
			}
		}
	}
	return errors.Errorf("no free slug after %d rounds", slugRounds)
}

// firstFree is a number above 1 that isn't taken, of which the one below is.
func firstFree(taken func(n int) (bool, error)) (int, error) {
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
