package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// namedBlock is a block of shell commands whose fence has a name, such as "```sh restore".
var namedBlock = regexp.MustCompile("(?ms)^```sh\\b[ ]*([\\w-]*)\n(.*?)^```$")

// blocks are the shell commands of a page in docs by the names of their fences. Tests find
// commands by these names, so headings and the order of a page may change.
type blocks struct {
	t        *testing.T
	commands map[string]string
	used     map[string]bool
}

// readBlocks reads the blocks of a page. It fails if a block has no unique name.
func readBlocks(t *testing.T, page string) *blocks {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", page))
	require.NoError(t, err)
	b := &blocks{t: t, commands: map[string]string{}, used: map[string]bool{}}
	for _, block := range namedBlock.FindAllStringSubmatch(string(text), -1) {
		name, commands := block[1], block[2]
		require.NotEmpty(t, name, "name this block of %s, for example ```sh restore:\n%s", page, commands)
		require.NotContains(t, b.commands, name, "two blocks of %s have one name", page)
		b.commands[name] = commands
	}
	require.NotEmpty(t, b.commands, page)
	return b
}

// named returns the commands of a block.
func (b *blocks) named(name string) string {
	b.t.Helper()
	require.Contains(b.t, b.commands, name)
	b.used[name] = true
	return b.commands[name]
}

// requireAllUsed fails unless the test has used every block except the given ones.
func (b *blocks) requireAllUsed(except ...string) {
	b.t.Helper()
	var left []string
	for name := range b.commands {
		if !b.used[name] {
			left = append(left, name)
		}
	}
	require.ElementsMatch(b.t, except, left, "blocks that the test does not run")
}
