// Package needs names the programs that some tests and checks run, and installs them.
//
// Tools is the only list. `make test`, `make browser`, .ci/run and the tests read it, so
// that a tool is added in one place.
package needs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Variable holds the names of the tools that the machine has, separated by commas.
// withstack sets it for the tests: Go then runs a test again when a tool was installed or
// removed since its result was cached.
const Variable = "EARSHOT_TEST_TOOLS"

// Tool is a program, or a module of Python, that does not come with Go.
type Tool struct {
	// Name is the program as it is looked for in the PATH; for a module of Python, the name
	// that is imported, behind pythonPrefix.
	Name string
	// Debian is the package of Debian and Ubuntu that has it.
	Debian string
	// Purpose says which tests and checks use it.
	Purpose string
}

const pythonPrefix = "python:"

// Tools are all of them, in the order of their names in messages.
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
}

// Named returns the tool of that name. It panics for one that is not in Tools.
func Named(name string) Tool {
	at := slices.IndexFunc(Tools, func(t Tool) bool { return t.Name == name })
	if at < 0 {
		panic("internal/needs has no tool " + name)
	}
	return Tools[at]
}

// Python returns the interpreter that the checks of the Python SDK use: the first one that
// has every module of Tools, else Debian's, for which the packages are, else any, else "".
func Python(ctx context.Context) string {
	var modules []string
	for _, t := range Tools {
		if module, is := strings.CutPrefix(t.Name, pythonPrefix); is {
			modules = append(modules, module)
		}
	}
	var other string
	// Debian's packages belong to its own interpreter, which another one may hide.
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if imports(ctx, path, modules...) {
			return path
		}
		other = path
	}
	return other
}

func imports(ctx context.Context, python string, modules ...string) bool {
	cmd := exec.CommandContext(ctx, python, "-c", "import "+strings.Join(modules, ", "))
	cmd.Dir = os.TempDir() // a directory "build" where we are would count as the module
	return cmd.Run() == nil
}

// Found says whether the machine has the tool.
func (t Tool) Found(ctx context.Context) bool {
	if module, is := strings.CutPrefix(t.Name, pythonPrefix); is {
		python := Python(ctx)
		return python != "" && imports(ctx, python, module)
	}
	if _, err := exec.LookPath(t.Name); err == nil {
		return true
	}
	if t.Name != "postgres" {
		return false
	}
	if _, err := exec.LookPath("pg_config"); err == nil {
		return true // devstack asks it for the server
	}
	for _, pattern := range PostgresDirs {
		if found, _ := filepath.Glob(filepath.Join(pattern, t.Name)); len(found) > 0 { // the patterns are well formed
			return true
		}
	}
	return false
}

// PostgresDirs are the directories, as patterns, where packages put a server that is not
// in the PATH: Debian and Ubuntu, the PostgreSQL project's packages for Red Hat, Homebrew
// on both kinds of Mac, Postgres.app.
var PostgresDirs = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// Present returns the names of the tools that the machine has: those of Variable where it
// is set, else it looks for each.
func Present(ctx context.Context) []string {
	if names, set := os.LookupEnv(Variable); set {
		return strings.Split(names, ",")
	}
	return Look(ctx)
}

// Look looks for each tool and returns the names of those that the machine has.
func Look(ctx context.Context) (names []string) {
	for _, t := range Tools {
		if t.Found(ctx) {
			names = append(names, t.Name)
		}
	}
	return names
}

// Command is the command that installs the tools on Debian and Ubuntu.
func Command(tools []Tool) string {
	return "sudo apt-get install " + strings.Join(Packages(tools), " ")
}

// Packages are Debian's packages of the tools, each once, sorted.
func Packages(tools []Tool) []string {
	var names []string
	for _, t := range tools {
		names = append(names, t.Debian)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
