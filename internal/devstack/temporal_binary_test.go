package devstack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeRepository creates a tools/go.mod with a tiny CLI that compiles in a second. It requires all
// three modules that determine the version of a build.
func fakeRepository(t *testing.T, version, mainSource string) (root string) {
	t.Helper()
	root = t.TempDir()
	mod := "module earshot/tools\n\ngo 1.26\n\ntool " + cliProgram.Package + "\n\n"
	imports := ""
	for i, module := range cliProgram.Modules {
		dir := fmt.Sprintf("module%d", i)
		moduleVersion := "v1.0.0"
		switch {
		case module == cliModule:
			moduleVersion = version
		case strings.HasSuffix(module, "/v2"):
			moduleVersion = "v2.0.0"
		}
		mod += fmt.Sprintf("require %s %s\nreplace %s => ./%s\n", module, moduleVersion, module, dir)
		write(t, "module "+module+"\n\ngo 1.26\n", root, "tools", dir, "go.mod")
		if module != cliModule {
			write(t, "package part\n", root, "tools", dir, "part.go")
			imports += fmt.Sprintf("import _ %q\n", module)
		}
	}
	write(t, mod, root, "tools", "go.mod")
	write(t, "package main\n"+imports+mainSource, root, "tools", "module0", "cmd", "temporal", "main.go")
	return root
}

func write(t *testing.T, text string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

func TestManyProgramsThatNeedTheCLIBuildItOnce(t *testing.T) {
	t.Parallel()
	root, cache := fakeRepository(t, "v1.0.0", "func main() {}\n"), t.TempDir()
	var builds atomic.Int32
	report := func(format string, args ...any) {
		t.Logf(format, args...)
		if strings.HasPrefix(format, "building") {
			builds.Add(1)
		}
	}
	var callers sync.WaitGroup
	for range 3 {
		callers.Go(func() {
			path, err := cliProgram.builtIn(t.Context(), cache, root, report)
			if err == nil {
				_, err = os.Stat(path)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	require.Equal(t, int32(1), builds.Load())
}

func TestANewVersionInToolsBuildsTheCLIAgainAndKeepsTheOneBefore(t *testing.T) {
	t.Parallel()
	root, cache := fakeRepository(t, "v1.0.0", "func main() {}\n"), t.TempDir()
	before, err := cliProgram.builtIn(t.Context(), cache, root, t.Logf)
	require.NoError(t, err)
	text, err := os.ReadFile(toolsMod(root))
	require.NoError(t, err)
	write(t, strings.Replace(string(text), cliModule+" v1.0.0", cliModule+" v1.1.0", 1), toolsMod(root))

	after, err := cliProgram.builtIn(t.Context(), cache, root, t.Logf)
	require.NoError(t, err)
	require.NotEqual(t, before, after)
	require.FileExists(t, before)
	require.FileExists(t, after)
}

func TestAFailedBuildQuotesTheCompiler(t *testing.T) {
	t.Parallel()
	root := fakeRepository(t, "v1.0.0", "func main() { undefinedName() }\n")
	_, err := cliProgram.builtIn(t.Context(), t.TempDir(), root, t.Logf)
	require.ErrorContains(t, err, "undefined: undefinedName")
}

func TestACLIOnThePATHIsTakenIfItsServerIsAsNewAsOurs(t *testing.T) {
	t.Parallel()
	for said, taken := range map[string]bool{
		"temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)\n": true,
		"temporal version 1.6.0 (Server 1.30.0, UI 2.43.0)\n": true,
		"temporal version 1.4.0 (Server 1.28.9, UI 2.39.0)\n": false,
		"temporal version 2.0.0 (Server 2.0.0, UI 3.0.0)\n":   false,
		"some other program called temporal\n":                false,
	} {
		require.Equal(t, taken, supported(said, "v1.29.1"), said)
	}
}

func TestTheRepositorysToolsNameEveryModuleThatDecidesAboutABuild(t *testing.T) {
	t.Parallel()
	wanted, err := cliProgram.versions(toolsMod(repository()))
	require.NoError(t, err)
	require.Len(t, wanted, len(cliProgram.Modules))
}
