// Package contract_test checks that .ci/contract finds the differences between contracts.
package contract_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const before = `openapi: 3.1.0
info:
  title: Test
  version: 1.0.0
paths:
  /v1/boards:
    get:
      operationId: listBoards
      parameters:
        - {name: limit, in: query, schema: {type: integer, maximum: 50}}
      responses:
        '200': {description: Boards.}
`

// repository makes a repository with the comparison script and a contract that was released as
// v1.0.0.
func repository(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	script, err := os.ReadFile(filepath.Join("..", "..", ".ci", "contract"))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".ci"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".ci", "contract"), script, 0o700)) //nolint:gosec // a script
	write(t, dir, "openapi.yaml", before)
	write(t, dir, "breaking-changes.txt", "")
	write(t, dir, "CHANGELOG.md", "# Changelog\n\n## 1.0.0\n\nThe first release.\n")
	git(t, dir, "init", "--quiet")
	commit(t, dir)
	git(t, dir, "tag", "v1.0.0")
	return dir
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func commit(t *testing.T, dir string) {
	t.Helper()
	git(t, dir, "add", ".")
	git(t, dir, "-c", "user.name=Test", "-c", "user.email=test@example.com", "commit", "--quiet", "-m", "Commit")
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "api"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "api", name), []byte(text), 0o600))
}

func compare(t *testing.T, dir, what string) (printed string, err error) {
	t.Helper()
	oasdiff, err := exec.Command("go", "tool", "-n", "oasdiff").Output()
	require.NoError(t, err)
	changelog := filepath.Join(t.TempDir(), "changelog")
	out, err := exec.Command("go", "build", "-o", changelog, "./changelog").CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(filepath.Join(dir, ".ci", "contract"), what, strings.TrimSpace(string(oasdiff)), changelog).CombinedOutput()
	return string(out), err
}

func TestAnAddedOperationIsNotABreakingChange(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	write(t, dir, "openapi.yaml", before+"  /v1/posts:\n    get:\n      responses:\n        '200': {description: Posts.}\n")
	out, err := compare(t, dir, "breaking")
	require.NoError(t, err, out)
}

func TestABreakingChangeFailsUntilItIsAllowedByName(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ old, now, named string }{
		"an operation that is gone": {"/v1/boards", "/v1/lists", "GET /v1/boards api path removed without deprecation"},
		"a limit that is tighter":   {"maximum: 50", "maximum: 20", "the max was decreased from"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := repository(t)
			write(t, dir, "openapi.yaml", strings.ReplaceAll(before, c.old, c.now))
			out, err := compare(t, dir, "breaking")
			require.Error(t, err)
			require.Contains(t, out, c.named)
			_, rest, _ := strings.Cut(out, "in API ")
			sentence, _, _ := strings.Cut(rest, " [")
			write(t, dir, "breaking-changes.txt", sentence+"\n")
			out, err = compare(t, dir, "breaking")
			require.NoError(t, err, out)
		})
	}
}
