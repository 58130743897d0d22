package architecture_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each recipe in docs/adding.md has an example and a search pattern for it. If the example spreads
// to another file, this test fails until the recipe lists that file.

// handWritten reports whether a recipe has to list a file. Recipes list code and the contract. They
// omit generated code, tests, and code that uses the service from outside.
func handWritten(path string) bool {
	for _, start := range []string{"ent/db/", "ent/migrations/", "api/gen/", "bench/", "internal/devstack/demo", "e2e/", "examples/", "sdk/", "tools/", "internal/testkit/"} {
		if strings.HasPrefix(path, start) {
			return false
		}
	}
	return path == "api/openapi.yaml" || (strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"))
}

var (
	lookedFor = regexp.MustCompile("Looked for: `([^`]+)`")
	namedFile = regexp.MustCompile("(?m)^\\| `([^`]+)`")
)

func TestARecipeNamesEveryFileThatItsExampleIsIn(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	doc, err := os.ReadFile(filepath.Join(root, "docs", "adding.md"))
	require.NoError(t, err)
	sections := strings.Split(string(doc), "\n## ")[1:]
	require.Len(t, sections, 11)
	sections = sections[:10] // the last has no example
	for _, section := range sections {
		title, _, _ := strings.Cut(section, "\n")
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			pattern := lookedFor.FindStringSubmatch(section)
			require.NotNil(t, pattern, "says how its example is looked for")
			var named []string
			for _, row := range namedFile.FindAllStringSubmatch(section, -1) {
				require.FileExists(t, filepath.Join(root, row[1]))
				if handWritten(row[1]) {
					named = append(named, row[1])
				}
			}
			require.ElementsMatch(t, filesWith(t, root, regexp.MustCompile(pattern[1])), named)
		})
	}
}

// filesWith returns the hand-written files that match a pattern.
func filesWith(t *testing.T, root string, pattern *regexp.Regexp) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", ".earshot", "node_modules"}, d.Name()) {
			return filepath.SkipDir
		}
		if d.IsDir() || !handWritten(filepath.ToSlash(name)) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil && pattern.Match(text) {
			found = append(found, filepath.ToSlash(name))
		}
		return err
	})
	require.NoError(t, err)
	return found
}
