// Command prose measures how hard the Markdown pages and the Go comments of a repository are to read, and fails
// above the limits below.
//
// It counts two things: sentences with more than 28 words, and free relatives. A free relative is a clause such as
// "who presses the button" or "of what": it hides the noun, and the reader has to find it. Clauses in questions count not.
//
//	go run -C tools/prose . [-all] ROOT
//
// On a failure, or with -all, it prints each counted sentence with its file and line.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
)

// The limits are a little above the figures of the day on which this check began, 0.7 and 0.4 %.
const (
	// maxFreeRelatives is the limit of free relatives in 1,000 words.
	maxFreeRelatives = 1.0
	// maxLongPercent is the limit of sentences with more than longWords words.
	maxLongPercent = 1.0
	longWords      = 28
	// minWords is the length of a sentence. Anything shorter is a label.
	minWords = 4
)

// freeRelatives are the patterns of free relatives. The words may begin a sentence or a clause, or follow a preposition.
var freeRelatives = []*regexp.Regexp{
	regexp.MustCompile(`(?i)^(?:who|what|whoever|whatever|whose)\b`),
	regexp.MustCompile(`(?i)(?:^|[,;:(] )(?:and |or |but )?(?:who|whoever|what|whatever) \w+`),
	regexp.MustCompile(`(?i)\b(?:of|for|by|with|than|from|to|in|on|until|beside|behind|between|after|before|about) (?:what|whoever|whatever|who)\b`),
	regexp.MustCompile(`(?i)\bthat nobody\b|\bnobody's\b|\bwhat (?:is|has|was|were|it|they|a|an|the)\b`),
	regexp.MustCompile(`(?i)\b(?:says|tells|knows|finds|keeps|shows|holds|judges) (?:who|what|whose|how|whether)\b`),
}

// text is a paragraph, a cell of a table, or a comment, with the line of its first word.
type text struct {
	file string
	line int
	body string
}

// sentence is a counted sentence.
type sentence struct {
	text
	words, free int
}

func main() {
	all := flag.Bool("all", false, "print the counted sentences also within the limits")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: prose [-all] ROOT")
		os.Exit(2)
	}
	good, err := run(flag.Arg(0), *all)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	if !good {
		os.Exit(1)
	}
}

func run(root string, all bool) (good bool, err error) {
	names, err := exec.Command("git", "-C", root, "ls-files", "-z", "*.md", "*.go").Output()
	if err != nil {
		return false, fmt.Errorf("list the files of %s: %w", root, err)
	}
	tree := os.DirFS(root)
	var counted []sentence
	sentences, words, free, long := 0, 0, 0, 0
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		found, err := texts(tree, name)
		if err != nil {
			return false, err
		}
		for _, t := range found {
			for _, s := range split(t) {
				sentences++
				words += s.words
				free += s.free
				if s.words > longWords {
					long++
				}
				if s.free > 0 || s.words > longWords {
					counted = append(counted, s)
				}
			}
		}
	}
	rate, percent := 1000*float64(free)/float64(max(1, words)), 100*float64(long)/float64(max(1, sentences))
	good = rate <= maxFreeRelatives && percent <= maxLongPercent
	if !good || all {
		for _, s := range counted {
			fmt.Printf("%s:%d: %d words, %d free relatives: %s\n", s.file, s.line, s.words, s.free, s.body)
		}
	}
	if !good {
		fmt.Printf("The prose is too hard to read: name the noun, and split long sentences.\n"+
			"Free relatives in 1,000 words: %.1f, the limit is %.1f. Sentences of more than %d words: %.1f %%, the limit is %.1f %%.\n",
			rate, maxFreeRelatives, longWords, percent, maxLongPercent)
	}
	return good, nil
}

// skipped are files that a program writes, and lists of changes.
var skipped = regexp.MustCompile(`(^|/)(node_modules|testdata|gen|db)/|\.gen\.go$|_generated_|(?i:changelog)\S*\.md$`)

func texts(tree fs.FS, name string) ([]text, error) {
	if skipped.MatchString(name) {
		return nil, nil
	}
	content, err := fs.ReadFile(tree, name)
	if os.IsNotExist(err) {
		return nil, nil // deleted, and not committed yet
	}
	if err != nil {
		return nil, err
	}
	if bytes.Contains(content[:min(len(content), 1024)], []byte("DO NOT EDIT")) {
		return nil, nil
	}
	lines := strings.Split(string(content), "\n")
	if path.Ext(name) == ".md" {
		return paragraphs(name, lines), nil
	}
	return comments(name, lines), nil
}

// collector joins lines to texts.
type collector struct {
	file  string
	texts []text
	open  bool // the next line belongs to the last text
}

func (c *collector) add(number int, line string) {
	if c.open {
		c.texts[len(c.texts)-1].body += " " + line
		return
	}
	c.texts, c.open = append(c.texts, text{c.file, number, line}), true
}

func (c *collector) end() { c.open = false }

var (
	fence    = regexp.MustCompile("^\\s*```")
	newBlock = regexp.MustCompile(`^\s*(?:[-*#|]|\d+\. )`)
)

func paragraphs(name string, lines []string) []text {
	c := &collector{file: name}
	code := false
	for i, line := range lines {
		switch {
		case fence.MatchString(line):
			code = !code
			c.end()
		case code:
		case strings.TrimSpace(line) == "":
			c.end()
		case strings.HasPrefix(strings.TrimSpace(line), "|"):
			for cell := range strings.SplitSeq(line, "|") {
				c.end()
				c.add(i+1, cell)
			}
			c.end()
		default:
			if newBlock.MatchString(line) {
				c.end()
			}
			c.add(i+1, line)
		}
	}
	return c.texts
}

var (
	comment   = regexp.MustCompile(`^\s*// ?(.*)`)
	directive = regexp.MustCompile(`^(go:|nolint|\+build)`)
)

func comments(name string, lines []string) []text {
	c := &collector{file: name}
	for i, line := range lines {
		found := comment.FindStringSubmatch(line)
		switch {
		case found == nil || strings.TrimSpace(found[1]) == "":
			c.end()
		case strings.HasPrefix(found[1], "\t"): // code
			c.end()
		case directive.MatchString(found[1]):
		default:
			if newBlock.MatchString(found[1]) {
				c.end()
			}
			c.add(i+1, found[1])
		}
	}
	return c.texts
}

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	link     = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	marks    = regexp.MustCompile(`[*_#>]+`)
	word     = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)
	boundary = regexp.MustCompile(`[.!?]\s+[A-Z"(]`)
)

// split returns the sentences of a text that are long enough to count.
func split(t text) (found []sentence) {
	body := codeSpan.ReplaceAllString(t.body, "X")
	body = marks.ReplaceAllString(link.ReplaceAllString(body, "$1"), "")
	body = strings.Join(strings.Fields(body), " ")
	for body != "" {
		one := body
		if at := boundary.FindStringIndex(body); at != nil {
			one = body[:at[0]+1]
		}
		body = strings.TrimSpace(body[len(one):])
		s := sentence{text: text{t.file, t.line, one}, words: len(word.FindAllString(one, -1))}
		if s.words < minWords {
			continue
		}
		for i, pattern := range freeRelatives {
			if i == 0 && strings.HasSuffix(one, "?") {
				continue // a question
			}
			s.free += len(pattern.FindAllString(one, -1))
		}
		found = append(found, s)
	}
	return found
}
