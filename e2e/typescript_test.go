package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
)

// TestATypeScriptClientFromThePublicGeneratorTellsTheStory does what an
// integrator does in another language: generate a client from the document that
// the service serves, compile it, and use it.
func TestATypeScriptClientFromThePublicGeneratorTellsTheStory(t *testing.T) {
	tier.Slow(t, "generates and compiles a TypeScript client")
	t.Parallel()
	p := newProgram(t, testkit.Database(t), append(temporalSettings(t), "EARSHOT_WEBHOOK_RETRY_DELAYS=1s,1s,1s,1s")...)
	p.serve()
	n := newNodeProject(t, "typescript", "EARSHOT_BASE_URL="+p.url, "EARSHOT_API_KEY="+p.key)
	// Nothing here needs a script of a package to run.
	n.mustRun("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline")

	n.mustRun("npm", "run", "generate", "--", filepath.Join(repository, "api", "openapi.yaml"))
	fromFile := n.typed("contract.d.ts")
	n.mustRun("npm", "run", "generate", "--", p.url+"/v1/openapi.json")
	require.Equal(t, fromFile, n.typed("contract.d.ts"), "the served contract has other types than api/openapi.yaml")

	n.mustRun("npm", "run", "build")
	require.Equal(t, n.announced("refused.ts"), n.refused("refused.ts"), "what doesn't compile, and why")

	said := n.mustRun("npm", "run", "story")
	require.Regexp(t, `dlv_\w+ \(\w+\.\w+\) was answered 500 and came again`, said)
	require.Contains(t, said, "The webhook is gone.")
	for _, kind := range []string{"webhooks", "boards", "contacts"} {
		require.Nil(t, p.first("/v1/"+kind), "the story leaves none of its %s", kind)
	}
}

// nodeProject is a copy of a folder of ours, so that what npm and the compiler
// write stays out of the repository.
type nodeProject struct {
	t   *testing.T
	dir string
	env []string
}

func newNodeProject(t *testing.T, folder string, env ...string) *nodeProject {
	t.Helper()
	tier.Needs(t, "node", "npm")
	n := &nodeProject{t: t, dir: t.TempDir(), env: append(cleanEnviron(), env...)}
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, f := range files {
		if !f.Type().IsRegular() {
			continue // node_modules and what was built, of somebody who tried it there
		}
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(n.dir, f.Name()), text, 0o600))
	}
	return n
}

// run runs a command to its end and returns what it said.
func (n *nodeProject) run(name string, args ...string) (output string, err error) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = n.dir, n.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (n *nodeProject) mustRun(name string, args ...string) string {
	n.t.Helper()
	out, err := n.run(name, args...)
	require.NoError(n.t, err, "%s %s:\n%s", name, strings.Join(args, " "), out)
	return out
}

func (n *nodeProject) read(file string) string {
	n.t.Helper()
	text, err := os.ReadFile(filepath.Join(n.dir, file))
	require.NoError(n.t, err)
	return string(text)
}

// typed are the lines of a generated file without comments, sorted, because the
// served document has its members in another order.
func (n *nodeProject) typed(file string) (lines []string) {
	n.t.Helper()
	for line := range strings.Lines(n.read(file)) {
		if text := strings.TrimSpace(line); !strings.HasPrefix(text, "*") && !strings.HasPrefix(text, "/*") {
			lines = append(lines, text)
		}
	}
	slices.Sort(lines)
	return lines
}

var (
	directive     = regexp.MustCompile(`// @ts-expect-error (TS\d+): `)
	compilerError = regexp.MustCompile(`(?m)^([\w.]+)\((\d+),\d+\): error (TS\d+)`)
)

// announced are the errors that the comments of a file expect, as file:line code.
func (n *nodeProject) announced(file string) (errors []string) {
	n.t.Helper()
	for i, line := range strings.Split(n.read(file), "\n") {
		if found := directive.FindStringSubmatch(line); found != nil {
			errors = append(errors, fmt.Sprintf("%s:%d %s", file, i+2, found[1])) // it is about the next line, and the first is 1
		}
	}
	require.NotEmpty(n.t, errors)
	return errors
}

// refused are the errors that the compiler finds in all files once the comments
// of one don't hush them. A comment alone is content with any error.
func (n *nodeProject) refused(file string) (errors []string) {
	n.t.Helper()
	bare := directive.ReplaceAllString(n.read(file), "// ")
	require.NoError(n.t, os.WriteFile(filepath.Join(n.dir, file), []byte(bare), 0o600))
	out, err := n.run("npm", "run", "build", "--", "--noEmit")
	require.Error(n.t, err, "the compiler accepts what it must refuse")
	for _, found := range compilerError.FindAllStringSubmatch(out, -1) {
		errors = append(errors, fmt.Sprintf("%s:%s %s", found[1], found[2], found[3]))
	}
	require.NotEmpty(n.t, errors, out)
	return errors
}
