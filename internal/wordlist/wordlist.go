// Package wordlist finds the words and phrases of a list in texts, regardless of case and of the
// encoding of accents.
package wordlist

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Folded returns the form in which texts are compared. It ignores case, the composition of
// characters, differences in white space, and invisible characters. For a text without visible
// characters it is empty.
func Folded(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) { // soft hyphens, joiners, directions, fillers, colours of emoji
			return -1
		}
		return r
	}, norm.NFKC.String(text))
	// Folding may decompose characters.
	return strings.Join(strings.Fields(norm.NFKC.String(cases.Fold().String(text))), " ")
}

// In reports whether the text contains one of the folded words or phrases. A part of a longer word
// doesn't count.
func In(text string, folded []string) bool {
	text = Folded(text)
	for _, word := range folded {
		if stands(word, text) {
			return true
		}
	}
	return false
}

func stands(word, text string) bool {
	for from := 0; word != ""; {
		at := strings.Index(text[from:], word)
		if at < 0 {
			return false
		}
		at += from
		if !goesOn(text[:at], word) && !goesOn(text[:at+len(word)], text[at+len(word):]) {
			return true
		}
		_, first := utf8.DecodeRuneInString(text[at:])
		from = at + first
	}
	return false
}

// goesOn reports whether a word continues from the end of one text to the start of another.
func goesOn(before, after string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	first, _ := utf8.DecodeRuneInString(after)
	if unicode.Is(unicode.M, first) && before != "" {
		return true // an accent on the character before
	}
	return inWord(last) && inWord(first)
}

// inWord reports whether a character forms words with its neighbours. In scripts without word
// separators, such as Chinese, Japanese or Thai, each character stands alone.
func inWord(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)) &&
		!unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
