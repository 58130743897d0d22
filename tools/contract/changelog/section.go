package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// change is a difference in the format of oasdiff.
type change struct {
	ID        string
	Text      string
	Level     int
	Operation string // the method
	Path      string
	Section   string
}

// breaking is the lowest level of changes that a client may notice.
const breaking = 2

const title = `# Changelog

What each version added to the API, newest first. An SDK has the version of the API that it was made from, so it is all in
the SDK of that version, too. What it is for stands in the guide of your deployment, at ` + "`/v1/docs/changelog`" + `.
`

const first = "The first release: the API under `/v1` with its webhooks, and the SDKs for TypeScript, Python and Go.\n"

const same = "The API is the same. Only the SDKs have changed.\n"

// renew replaces the section of a version, or adds it at the top.
func renew(old, version, released string, changes []change) (string, error) {
	sections := strings.Split(old, "\n## ")[1:]
	at := slices.IndexFunc(sections, func(s string) bool { return strings.HasPrefix(s, version+"\n") })
	section := version + "\n\n"
	switch {
	case released == "" && len(sections) > max(at+1, 0):
		return "", fmt.Errorf("there are versions below %s, but no tag v* of a release: git fetch --tags", version)
	case released == "":
		section += first
	case released != version:
		section += tell(changes)
	case len(changes) > 0:
		return "", fmt.Errorf("the contract has differences from the %s that is released: raise the version in api/openapi.yaml", version)
	default:
		return old, nil // the same as in the release
	}
	if at < 0 {
		sections = slices.Insert(sections, 0, section)
	} else {
		sections[at] = section
	}
	text := title
	for _, s := range sections {
		text += "\n## " + strings.TrimRight(s, "\n") + "\n"
	}
	return text, nil
}

// tell describes the changes for an integrator. Most changes are the same in many operations, so
// tell groups them.
func tell(changes []change) string {
	var operations []string
	var broken, others grouped
	for _, c := range changes {
		place := fmt.Sprintf("`%s %s`", c.Operation, c.Path)
		if event, ok := strings.CutPrefix(c.Path, "webhook:"); ok {
			place = fmt.Sprintf("the event `%s`", event)
		}
		switch {
		case c.Section == "info":
		case c.ID == "endpoint-added":
			operations = append(operations, place)
		case c.Level >= breaking:
			broken.add(c.Text, place)
		default:
			others.add(c.Text, place)
		}
	}
	var parts []string
	for _, part := range []struct {
		title string
		lines []string
	}{{"New", operations}, {"May require changes in your code", broken.lines()}, {"Changed", others.lines()}} {
		if len(part.lines) > 0 {
			parts = append(parts, "### "+part.title+"\n\n- "+strings.Join(part.lines, "\n- ")+"\n")
		}
	}
	if len(parts) == 0 {
		return same
	}
	return strings.Join(parts, "\n")
}

// grouped collects changes with the same text, with their operations.
type grouped struct {
	texts  []string
	places map[string][]string
}

// Details that separate changes with the same meaning for a reader: the status of the answer, and
// the depth within the answer.
var (
	inWhichAnswer = regexp.MustCompile(" with the `\\d+` status| for the (?:response )?status `\\d+`")
	howDeep       = regexp.MustCompile("`data/(?:items/)?(?:allOf\\[[^]]*]/)?")
)

func (g *grouped) add(text, place string) {
	if g.places == nil {
		g.places = map[string][]string{}
	}
	text = howDeep.ReplaceAllString(inWhichAnswer.ReplaceAllString(text, ""), "`")
	if g.places[text] == nil {
		g.texts = append(g.texts, text)
	}
	if !slices.Contains(g.places[text], place) {
		g.places[text] = append(g.places[text], place)
	}
}

// few is the number of operations that a line names. It counts the rest.
const few = 4

func (g *grouped) lines() (lines []string) {
	for _, text := range g.texts {
		places := g.places[text]
		where := strings.Join(places[:min(len(places), few)], ", ")
		if more := len(places) - few; more > 0 {
			where += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, text+": "+where)
	}
	return lines
}
