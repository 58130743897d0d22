package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/tier"
)

// TestATypeScriptClientFromThePublicGeneratorCompiles works as an integrator does in another
// language. It generates a client from the contract and compiles a program that uses it. The served
// contract and the file of the repository give the same types.
func TestATypeScriptClientFromThePublicGeneratorCompiles(t *testing.T) {
	tier.Slow(t, "generates and compiles a TypeScript client")
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	n := newNodeProject(t, "typescript")
	n.mustRun("npm", "run", "generate", "--", filepath.Join(repository, "api", "openapi.yaml"))
	fromFile := n.typed("contract.d.ts")
	n.mustRun("npm", "run", "generate", "--", p.url+"/v1/openapi.json")
	require.Equal(t, fromFile, n.typed("contract.d.ts"), "the served contract has other types than api/openapi.yaml")

	n.mustRun("npm", "run", "build")
	require.Equal(t, n.announced("refused.ts"), n.refused("refused.ts"), "lines that don't compile, and the reasons")
}

// typed returns the lines of a generated file without comments, sorted, because the served document
// orders its members differently.
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

// announced returns the errors that the comments of a file expect, as file:line code.
func (n *nodeProject) announced(file string) (errors []string) {
	n.t.Helper()
	for i, line := range strings.Split(n.read(file), "\n") {
		if found := directive.FindStringSubmatch(line); found != nil {
			errors = append(errors, fmt.Sprintf("%s:%d %s", file, i+2, found[1])) // The comment is about the next line, and lines count from 1.
		}
	}
	require.NotEmpty(n.t, errors)
	return errors
}

// refused returns the compiler's errors in all files when the comments of one file don't suppress
// them. Such a comment alone would accept any error.
func (n *nodeProject) refused(file string) (errors []string) {
	n.t.Helper()
	bare := directive.ReplaceAllString(n.read(file), "// ")
	require.NoError(n.t, os.WriteFile(filepath.Join(n.dir, file), []byte(bare), 0o600))
	out, err := n.run("npm", "run", "build")
	require.Error(n.t, err, "the compiler accepts what it must refuse")
	for _, found := range compilerError.FindAllStringSubmatch(out, -1) {
		errors = append(errors, fmt.Sprintf("%s:%s %s", found[1], found[2], found[3]))
	}
	require.NotEmpty(n.t, errors, out)
	return errors
}
