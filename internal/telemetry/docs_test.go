package telemetry_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	instrument = regexp.MustCompile(`\.?(Counter|CounterOf|Histogram|Sizes|Gauge|gauge)\(\s*"(earshot_\w+)"`)
	inTable    = regexp.MustCompile("(?m)^\\| `(earshot_\\w+)`")
	// shown has the suffixes that /metrics adds to the names of instruments.
	shown = map[string]string{"Counter": "_total", "CounterOf": "_total", "Histogram": "_seconds"}
)

func TestTheOperatorsPageHasEveryMetricOfOursAndNoOther(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	var made []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == ".earshot" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, found := range instrument.FindAllStringSubmatch(string(text), -1) {
			made = append(made, found[2]+shown[found[1]])
		}
		return err
	})
	require.NoError(t, err)
	require.Greater(t, len(made), 20)
	page, err := os.ReadFile(filepath.Join(root, "docs", "operating.md"))
	require.NoError(t, err)
	var told []string
	for _, row := range inTable.FindAllStringSubmatch(string(page), -1) {
		told = append(told, row[1])
	}
	require.ElementsMatch(t, made, told)
}
