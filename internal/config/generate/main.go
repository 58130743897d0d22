// Command generate writes the tables of settings in docs/operating.md, between the comments that name them.
//
//	go run ./internal/config/generate
package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/go-faster/errors"

	"earshot/internal/config"
)

const page = "docs/operating.md" // seen from the root of the repository

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	text, err := os.ReadFile(page)
	if err != nil {
		return errors.Wrap(err, "read the page")
	}
	out := string(text)
	for _, t := range []struct {
		name     string
		temporal bool
	}{{"settings", false}, {"settings of Temporal", true}} {
		if out, err = replace(out, t.name, table(t.temporal)); err != nil {
			return errors.Wrapf(err, "write %s", page)
		}
	}
	if out == string(text) {
		return nil
	}
	return os.WriteFile(page, []byte(out), 0o644) //nolint:gosec // a page for everybody
}

func table(temporal bool) string {
	var b strings.Builder
	b.WriteString("| variable | default | |\n|---|---|---|\n")
	for _, s := range config.Settings() {
		if s.Temporal != temporal {
			continue
		}
		byDefault := s.Default
		if s.Required {
			byDefault = cmp.Or(byDefault, "required")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Name, byDefault, strings.ReplaceAll(s.Help, "<", "&lt;"))
	}
	return b.String()
}

// replace puts the table between the comments "generated: name" and "end of name".
func replace(page, name, table string) (string, error) {
	before, rest, begun := strings.Cut(page, "<!-- generated: "+name+" -->\n")
	_, after, ended := strings.Cut(rest, "<!-- end of "+name+" -->\n")
	if !begun || !ended {
		return "", errors.Errorf("the comments of the table of %s are missing", name)
	}
	return before + "<!-- generated: " + name + " -->\n" + table + "<!-- end of " + name + " -->\n" + after, nil
}
