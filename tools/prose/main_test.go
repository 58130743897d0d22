package main

import (
	"strings"
	"testing"
)

func TestFreeRelativesAreCounted(t *testing.T) {
	t.Parallel()
	for body, free := range map[string]int{
		"A visitor who confirms by e-mail votes.":      0, // the noun is there
		"Who presses the button votes for the post.":   2, // at the start of a sentence and of a clause
		"The list of what it sent is kept.":            2, // after a preposition, and "what it"
		"Each row says whether it was sent by us.":     1,
		"What should we do about it, then?":            1, // a question, but "What should" begins a clause
		"The column `what is` has the name of a file.": 0, // code
	} {
		found := split(text{body: body})
		if len(found) != 1 || found[0].free != free {
			t.Errorf("%q: %+v, want %d free relatives", body, found, free)
		}
	}
}

func TestSentencesAndPlacesAreFound(t *testing.T) {
	t.Parallel()
	page := "# A title of four words\n\nOne sentence is here. And\nanother one is here.\n```sh\nwho runs of what\n```\n| a cell with four words | b |\n"
	var found []sentence
	for _, paragraph := range paragraphs("page.md", strings.Split(page, "\n")) {
		found = append(found, split(paragraph)...)
	}
	want := []sentence{
		{text{"page.md", 1, "A title of four words"}, 5, 0},
		{text{"page.md", 3, "One sentence is here."}, 4, 0},
		{text{"page.md", 3, "And another one is here."}, 5, 0},
		{text{"page.md", 8, "a cell with four words"}, 5, 0},
	}
	if len(found) != len(want) {
		t.Fatalf("%+v", found)
	}
	for i := range want {
		if found[i] != want[i] {
			t.Errorf("%+v, want %+v", found[i], want[i])
		}
	}
	source := "// Comment of four words.\n//\n//\tcode := who(of, what)\nvar a int // not at the start\n"
	if got := comments("a.go", strings.Split(source, "\n")); len(got) != 1 || got[0].line != 1 {
		t.Errorf("%+v", got)
	}
}
