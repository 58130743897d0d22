// Package wordlist finds the words and phrases of a list in texts, whatever their case and however
// their accents are written.
package wordlist

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Folded is the form in which texts are compared: two that differ in nothing but case, in how a
// character is composed, in white space or in characters that nobody sees have the same one. It is
// empty where nothing is to be seen.
func Folded(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) { // soft hyphens, joiners, directions, fillers, colours of emoji
			return -1
		}
		return r
	}, norm.NFKC.String(text))
	// Folding may take apart what is composed.
	return strings.Join(strings.Fields(norm.NFKC.String(cases.Fold().String(text))), " ")
}

// In reports whether one of the words or phrases, which are folded, stands in the text by itself:
// not as a part of a longer word.
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

// goesOn reports whether a word goes on from the end of one text to the beginning of another.
func goesOn(before, after string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	first, _ := utf8.DecodeRuneInString(after)
	if unicode.Is(unicode.M, first) && before != "" {
		return true // an accent that belongs to the character before
	}
	return inWord(last) && inWord(first)
}

// inWord reports whether a character is a part of a word with those beside it. Where words aren't
// set apart, as in Chinese, Japanese or Thai, each character stands for itself.
func inWord(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)) &&
		!unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
