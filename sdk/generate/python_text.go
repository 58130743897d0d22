package main

import (
	"regexp"
	"slices"
	"strings"
)

// pythonWidth is the width at which comments in Python are wrapped.
const pythonWidth = 100

// pyJoined matches two lines of one paragraph. A list, a table and the arguments keep their lines.
var pyJoined = regexp.MustCompile(`([^\n])\n([^-|\s])`)

// pyDocstring writes paragraphs between triple quotes, indented by the given number of spaces.
func pyDocstring(indent int, paragraphs ...string) string {
	margin := strings.Repeat(" ", indent)
	paragraphs = slices.DeleteFunc(paragraphs, func(p string) bool { return p == "" })
	if len(paragraphs) == 0 {
		return ""
	}
	text := strings.NewReplacer(`\`, `\\`, `"""`, `\"\"\"`).Replace(strings.Join(paragraphs, "\n\n"))
	var lines []string
	for line := range strings.SplitSeq(pyJoined.ReplaceAllString(text, "$1 $2"), "\n") {
		lines = append(lines, pyWrapped(line, pythonWidth-indent)...)
	}
	if last := lines[len(lines)-1]; strings.HasSuffix(last, `"`) {
		lines[len(lines)-1] = last + " "
	}
	for i, line := range lines {
		if i > 0 && line != "" {
			lines[i] = margin + line
		}
	}
	closing := `"""`
	if len(lines) > 1 {
		closing = "\n" + margin + closing
	}
	return margin + `"""` + strings.Join(lines, "\n") + closing + "\n"
}

// pyWrapped breaks a line at spaces and keeps its indentation.
func pyWrapped(line string, width int) (lines []string) {
	margin := line[:len(line)-len(strings.TrimLeft(line, " "))]
	if margin != "" {
		margin += "    "
	}
	for len(line) > width {
		at := strings.LastIndex(line[:width+1], " ")
		if at <= len(margin) {
			break
		}
		lines = append(lines, line[:at])
		line = margin + line[at+1:]
	}
	return append(lines, line)
}

var (
	pyBlankAfterClass = regexp.MustCompile(`(?m)^(class .*:\n)\n+`)
	pyBlankAfterDoc   = regexp.MustCompile(`("""\n)\n+( +return)`)
	pyManyBlanks      = regexp.MustCompile(`\n{4,}`)
)

// pySpaced removes the empty lines that missing parts leave.
func pySpaced(text []byte) []byte {
	text = pyBlankAfterClass.ReplaceAll(text, []byte("$1"))
	text = pyBlankAfterDoc.ReplaceAll(text, []byte("$1$2"))
	return pyManyBlanks.ReplaceAll(text, []byte("\n\n\n"))
}
