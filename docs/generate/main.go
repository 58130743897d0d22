// Command generate writes the parts of Markdown pages and of deployments that follow from the code or the
// contract, between the lines that name them.
//
//	go run ./docs/generate
package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-faster/errors"

	"earshot/internal/architecture"
	"earshot/internal/config"
	"earshot/internal/problem"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	pages, err := written(root)
	if err != nil {
		return err
	}
	for page, text := range pages {
		if err := os.WriteFile(filepath.Join(root, page), []byte(text), 0o600); err != nil { // it exists, and keeps its mode
			return errors.Wrap(err, "write the page")
		}
	}
	return nil
}

// written returns the pages with their generated parts, by their paths below the root of the repository.
func written(root string) (map[string]string, error) {
	open, err := openEnums(filepath.Join(root, "api", "openapi.yaml"))
	if err != nil {
		return nil, errors.Wrap(err, "read the contract")
	}
	pages := map[string]string{}
	for _, part := range []struct{ page, name, text string }{
		{"docs/operating.md", "settings", table(false)},
		{"docs/operating.md", "settings of Temporal", table(true)},
		{"docs/api/versioning.md", "open enums", open},
		{"docs/architecture.md", "packages", packages()},
		{"docs/api/errors.md", "reasons of ERR_FORBIDDEN", reasons(problem.Forbidden)},
		{"docs/api/errors.md", "reasons of ERR_CONFLICT", reasons(problem.Conflict)},
	} {
		if pages[part.page] == "" {
			text, err := os.ReadFile(filepath.Join(root, part.page))
			if err != nil {
				return nil, errors.Wrap(err, "read the page")
			}
			pages[part.page] = string(text)
		}
		if pages[part.page], err = replace(pages[part.page], part.name, part.text); err != nil {
			return nil, errors.Wrapf(err, "write %s", part.page)
		}
	}
	files, err := deployments(root)
	if err != nil {
		return nil, err
	}
	maps.Copy(pages, files)
	return pages, nil
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

// reasons lists the values of details.reason that clients of the API meet with the code.
func reasons(of problem.Code) string {
	var b strings.Builder
	for _, r := range problem.Reasons {
		if r.Code == of && r.Cause != "" {
			fmt.Fprintf(&b, "- `%s`: %s\n", r.Name, r.Cause)
		}
	}
	return b.String()
}

// replace puts the text between the comments "generated: name" and "end of name".
func replace(page, name, text string) (string, error) {
	before, rest, begun := strings.Cut(page, "<!-- generated: "+name+" -->\n")
	_, after, ended := strings.Cut(rest, "<!-- end of "+name+" -->\n")
	if !begun || !ended {
		return "", errors.Errorf("the comments of the %s are missing", name)
	}
	return before + "<!-- generated: " + name + " -->\n" + text + "<!-- end of " + name + " -->\n" + after, nil
}

func packages() string {
	var b strings.Builder
	for _, layer := range architecture.Layers {
		fmt.Fprintf(&b, "\n**%s**\n\n", layer.Name)
		for _, p := range layer.Packages {
			if p.Owns != "" {
				fmt.Fprintf(&b, "- `%s`: %s\n", strings.TrimSuffix(p.Path, "/..."), p.Owns)
			}
		}
	}
	b.WriteByte('\n')
	return b.String()
}
