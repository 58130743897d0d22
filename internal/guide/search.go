package guide

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits of a search. It needs no key, so its input and its results are bounded.
const (
	// maxQuery is the number of characters of a query that count.
	maxQuery = 200
	// maxWords is the number of words of a query that count. Usual queries have fewer.
	maxWords = 10
	// maxResults is more than a reader looks at.
	maxResults = 30
	// around is the number of bytes that a result shows before and after the matching word, about
	// two lines together.
	around = 90
)

// shortened returns the part of a query that counts, as valid UTF-8.
func shortened(query string) string {
	characters := []rune(strings.ToValidUTF8(query[:min(len(query), utf8.UTFMax*maxQuery)], " "))
	return string(characters[:min(len(characters), maxQuery)])
}

// section is the unit of the search: a heading with the text up to the next one.
type section struct {
	page, title, url, text string
	// lowerTitle and lowerText have the same bytes in lower case, so that a position in them is
	// also a position in the text.
	lowerTitle, lowerText string
}

func newSection(page, title, url, text string) section {
	s := section{page: page, title: title, url: url, lowerTitle: lower(title)}
	s.add(text)
	return s
}

func (s *section) add(text string) {
	s.text = strings.TrimSpace(s.text + " " + text)
	s.lowerText = lower(s.text)
}

// lower changes only ASCII letters, so every byte stays at its position.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// result is an entry on the page of results.
type result struct {
	Page, Title, URL      string
	Before, Match, Behind string
	// inTitle is the number of the query's words in the title.
	inTitle int
}

// search returns the sections that contain all words. Sections with the most words in the title
// come first. Otherwise, the order is the guide's.
func (g *Guide) search(query string) []result {
	words := strings.Fields(lower(query))
	words = words[:min(len(words), maxWords)]
	if len(words) == 0 {
		return nil
	}
	var found []result
	for i := range g.sections {
		if r, ok := g.sections[i].match(words); ok {
			found = append(found, r)
		}
	}
	slices.SortStableFunc(found, func(a, b result) int { return cmp.Compare(b.inTitle, a.inTitle) })
	return found[:min(len(found), maxResults)]
}

func (s *section) match(words []string) (r result, ok bool) {
	r = result{Page: s.page, Title: s.title, URL: s.url}
	at, length := 0, 0
	for _, word := range words {
		inTitle, inText := strings.Contains(s.lowerTitle, word), strings.Index(s.lowerText, word)
		if inTitle {
			r.inTitle++
		}
		if !inTitle && inText < 0 {
			return r, false
		}
		if length == 0 && inText >= 0 {
			at, length = inText, len(word)
		}
	}
	r.Before, r.Match, r.Behind = excerpt(s.text, at, length)
	return r, true
}

// excerpt returns a word with the text around it. It cuts the text between words, if there are any.
func excerpt(text string, at, length int) (before, match, behind string) {
	before, match, behind = text[:at], text[at:at+length], text[at+length:]
	if len(before) > around {
		before = before[len(before)-around:]
		if space := strings.IndexByte(before, ' '); space >= 0 {
			before = before[space+1:]
		}
		before = "… " + trimmed(before)
	}
	if len(behind) > around {
		behind = behind[:around]
		if space := strings.LastIndexByte(behind, ' '); space >= 0 {
			behind = behind[:space]
		}
		behind = trimmed(behind) + " …"
	}
	return before, match, behind
}

// trimmed removes the rest of a character that was cut.
func trimmed(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(text, "")
}
