// Package needs lists the programs that some tests and checks run, and installs them.
//
// Tools is the only list. `make test`, `make browser`, .ci/run and the tests read it, so a new tool
// is added in one place.
package needs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Variable names the environment variable with the tools on the machine, separated by commas.
// withstack sets it for the tests. Go then runs a test again if a tool was installed or removed
// after its result was cached.
const Variable = "EARSHOT_TEST_TOOLS"

// Tool is a program or a Python module that does not come with Go.
type Tool struct {
	// Name is the name of the program in the PATH. For a Python module it is the import name with
	// the prefix pythonPrefix.
	Name string
	// Debian has the names of the packages in Debian and Ubuntu, with spaces between them.
	Debian string
	// Purpose describes the tests and checks that use the tool.
	Purpose string
}

const pythonPrefix = "python:"

// Tools lists all tools, in the order of their names in messages.
var Tools = []Tool{
	{"postgres", "postgresql", "the database of nearly every test"},
	{"node", "nodejs", "the TypeScript SDK, the browser's plays, clients of the agent tools"},
	{"npm", "npm", "the libraries of the same"},
	{"chromium", "chromium", "public boards, the widget and the reference in a browser"},
	{"curl", "curl", "the commands of README and guide"},
	{"jq", "jq", "the commands of README and guide"},
	{"python3", "python3", "the Python SDK and the receivers of the guide"},
	{"python:httpx", "python3-httpx", "the Python SDK sends requests with it"},
	{"python:build", "python3-build", "packs the Python SDK"},
	{"python:setuptools", "python3-setuptools", "packs the Python SDK"},
	{"python:wheel", "python3-wheel", "packs the Python SDK"},
	{"python:flake8", "flake8", "lints the Python SDK"},
	{"ruby", "ruby", "the receivers of the guide"},
	{"php", "php-cli", "the receivers of the guide"},
	{"gcc", "gcc libc6-dev", "make race: the race detector is in C"},
}

// Named returns the tool with the name. It panics if Tools has none.
func Named(name string) Tool {
	at := slices.IndexFunc(Tools, func(t Tool) bool { return t.Name == name })
	if at < 0 {
		panic("internal/needs has no tool " + name)
	}
	return Tools[at]
}

// Python returns the interpreter for the checks of the Python SDK. It prefers the first one with
// every module in Tools, then Debian's own, for which the packages are made. Otherwise it returns
// any other, or "".
func Python(ctx context.Context) string {
	path, _ := python(ctx)
	return path
}

// python is Python. All reports whether the interpreter has every module in Tools.
func python(ctx context.Context) (path string, all bool) {
	var modules []string
	for _, t := range Tools {
		if module, is := strings.CutPrefix(t.Name, pythonPrefix); is {
			modules = append(modules, module)
		}
	}
	var other string
	// Debian's packages belong to Debian's interpreter, which another one may hide.
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if finds(ctx, path, modules...) {
			return path, true
		}
		other = path
	}
	return other, false
}

// finds reports whether an interpreter has all of the modules.
func finds(ctx context.Context, python string, modules ...string) bool {
	// An import of all modules would take three seconds of each run of the tests.
	const found = "import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))"
	cmd := exec.CommandContext(ctx, python, append([]string{"-c", found}, modules...)...)
	cmd.Dir = os.TempDir() // a directory "build" where we are would count as the module
	return cmd.Run() == nil
}

// Found reports whether the machine has the tool.
func (t Tool) Found(ctx context.Context) bool {
	if module, is := strings.CutPrefix(t.Name, pythonPrefix); is {
		interpreter, all := python(ctx)
		return all || interpreter != "" && finds(ctx, interpreter, module)
	}
	if _, err := exec.LookPath(t.Name); err == nil {
		return true
	}
	if t.Name != "postgres" {
		return false
	}
	if _, err := exec.LookPath("pg_config"); err == nil {
		return true // devstack finds the server with it
	}
	for _, pattern := range PostgresDirs {
		if found, _ := filepath.Glob(filepath.Join(pattern, t.Name)); len(found) > 0 { // the patterns are valid
			return true
		}
	}
	return false
}

// PostgresDirs are glob patterns of directories in which packages install a server outside of the
// PATH. They cover Debian and Ubuntu, the PostgreSQL project's packages for Red Hat, Homebrew on
// both kinds of Mac, and Postgres.app.
var PostgresDirs = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// Present returns the names of the tools on the machine. It reads Variable if it is set, and
// otherwise searches for each tool.
func Present(ctx context.Context) []string {
	if names, set := os.LookupEnv(Variable); set {
		return strings.Split(names, ",")
	}
	return Look(ctx)
}

// Look searches for each tool and returns the names of those on the machine.
func Look(ctx context.Context) (names []string) {
	// Usually one start of an interpreter answers for all modules. A start for each module would take a second.
	_, all := python(ctx)
	for _, t := range Tools {
		if all && strings.HasPrefix(t.Name, pythonPrefix) || t.Found(ctx) {
			names = append(names, t.Name)
		}
	}
	return names
}

// Command returns the command that installs the tools on Debian and Ubuntu.
func Command(tools []Tool) string {
	return "sudo apt-get install " + strings.Join(Packages(tools), " ")
}

// Packages returns the Debian packages of the tools, sorted and without duplicates.
func Packages(tools []Tool) []string {
	var names []string
	for _, t := range tools {
		names = append(names, strings.Fields(t.Debian)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
