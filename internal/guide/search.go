package guide

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// What a search takes and gives. Anybody may search, without a key, so both have an end.
const (
	// maxQuery is how many characters of a query count.
	maxQuery = 200
	// maxWords is how many words of a query count: nobody looks for more.
	maxWords = 10
	// maxResults is more than anybody reads.
	maxResults = 30
	// around is how much text a result shows before and behind the word that it was
	// found by, in bytes: some two lines together.
	around = 90
)

// shortened is the part of a query that counts, without what is no text.
func shortened(query string) string {
	characters := []rune(strings.ToValidUTF8(query[:min(len(query), utf8.UTFMax*maxQuery)], " "))
	return string(characters[:min(len(characters), maxQuery)])
}

// section is what a search finds: a heading with the text up to the next one.
type section struct {
	page, title, url, text string
	// lowerTitle and lowerText have the same bytes in lower case, so that what is found
	// there stands at the same place in the text.
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

// lower changes the letters of ASCII only, which keeps every byte at its place.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// result is what the page of results shows.
type result struct {
	Page, Title, URL      string
	Before, Match, Behind string
	// inTitle is how many of the words the title has.
	inTitle int
}

// search finds the sections that have all words, those with the most of them in the
// title first, and otherwise in the guide's order.
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

// excerpt is a word with what stands around it, cut between words where there are any.
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

// trimmed takes away what a cut has left of a character.
func trimmed(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(text, "")
}
