package architecture_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"

	"earshot/internal/architecture"
)

const module = "earshot"

// onlyTests are packages that no program may import.
var onlyTests = []string{"internal/testkit", "bench", "e2e"}

// testedFromOutside are packages whose tests start the whole service, which contains the package
// itself.
var testedFromOutside = []string{
	"api", "dispatch", "internal/contacts", "internal/delivery", "internal/feedback", "internal/publicactions", "internal/retention", "internal/postgres",
	"internal/webhooks", "mcp",
	"web", "worker",
}

// pkg is a package as `go list` describes it. TestGoFiles are the tests inside the package.
type pkg struct {
	ImportPath, Dir      string
	GoFiles, TestGoFiles []string
	XTestGoFiles         []string // tests outside the package
	Imports              []string
}

func (p pkg) name() string { return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/") }

// own returns the imports from this module.
func (p pkg) own() []string {
	var found []string
	for _, path := range p.Imports {
		if path == module || strings.HasPrefix(path, module+"/") {
			found = append(found, strings.TrimPrefix(path, module+"/"))
		}
	}
	return found
}

var packages = sync.OnceValues(func() ([]pkg, error) {
	out, err := golist("-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports", "./...")
	if err != nil {
		return nil, err
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p pkg
		if err := d.Decode(&p); err != nil {
			return nil, errors.Wrap(err, "read what go list says")
		}
		all = append(all, p)
		// These reads exist only for the cache of test results. The cache doesn't see the files
		// that go list reads, and would miss a new file or package.
		for _, dir := range []string{p.Dir, filepath.Dir(p.Dir)} {
			if _, err := os.ReadDir(dir); err != nil {
				return nil, errors.Wrap(err, "look for packages")
			}
		}
	}
	return all, nil
})

func golist(args ...string) ([]byte, error) {
	list := exec.Command("go", append([]string{"list"}, args...)...)
	list.Dir = filepath.Join("..", "..")
	out, err := list.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = errors.Errorf("%s: %s", err, exit.Stderr)
		}
		return nil, errors.Wrap(err, "go list")
	}
	return out, nil
}

func all(t *testing.T) []pkg {
	t.Helper()
	found, err := packages()
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}

// find returns the package with the given name.
func find(t *testing.T, name string) pkg {
	t.Helper()
	found := all(t)
	at := slices.IndexFunc(found, func(p pkg) bool { return p.name() == name })
	require.GreaterOrEqual(t, at, 0, name)
	return found[at]
}

// covers reports whether an entry of the rule covers a package.
func covers(entry, name string) bool {
	below, all := strings.CutSuffix(entry, "...")
	if !all {
		return entry == name
	}
	return strings.HasPrefix(name+"/", below)
}

// ruleFor returns the packages that a package may import. The longest entry that covers the package
// applies.
func ruleFor(name string) (may []string, known bool) {
	best := ""
	for _, layer := range architecture.Layers {
		for _, p := range layer.Packages {
			if covers(p.Path, name) && len(p.Path) > len(best) {
				best, may = p.Path, p.MayImport
			}
		}
	}
	return may, best != ""
}

func TestPackagesImportInOneDirectionOnly(t *testing.T) {
	t.Parallel()
	for _, p := range all(t) {
		may, known := ruleFor(p.name())
		require.True(t, known, "packages.go has no entry for %s", p.name())
		for _, imported := range p.own() {
			require.True(t, slices.ContainsFunc(may, func(entry string) bool { return covers(entry, imported) }),
				"%s must not import %s", p.name(), imported)
		}
	}
}

func TestTheListHasOnlyPackagesThatExist(t *testing.T) {
	t.Parallel()
	for _, layer := range architecture.Layers {
		for _, entry := range layer.Packages {
			require.True(t, slices.ContainsFunc(all(t), func(p pkg) bool { return covers(entry.Path, p.name()) }), entry.Path)
		}
	}
}

func TestNothingImportsACommand(t *testing.T) {
	t.Parallel()
	for _, p := range all(t) {
		for _, imported := range p.own() {
			require.False(t, strings.HasPrefix(imported, "cmd/"), "%s imports %s", p.name(), imported)
		}
	}
}

func TestNoProgramImportsATestPackage(t *testing.T) {
	t.Parallel()
	isForTests := func(name string) bool {
		return slices.ContainsFunc(onlyTests, func(o string) bool { return covers(o+"/...", name) })
	}
	for _, p := range all(t) {
		if isForTests(p.name()) {
			continue
		}
		for _, imported := range p.own() {
			require.False(t, isForTests(imported), "%s imports %s", p.name(), imported)
		}
	}
}

func TestPackagesOfTheServiceAreTestedFromOutside(t *testing.T) {
	t.Parallel()
	for _, name := range testedFromOutside {
		require.Empty(t, find(t, name).TestGoFiles, "%s: a test inside the package makes Go compile the service a second time", name)
	}
}

func TestReceiversNeedNothingButTheStandardLibrary(t *testing.T) {
	t.Parallel()
	out, err := golist("-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./webhook")
	require.NoError(t, err)
	require.Equal(t, []string{module + "/webhook"}, strings.Fields(string(out)))
}

// A workflow is replayed, and the same input must lead to the same commands. Random numbers, the
// network, the database and a library's JSON encoding are therefore banned.
func TestWorkflowsImportNothingThatCouldDifferInAReplay(t *testing.T) {
	t.Parallel()
	for _, imported := range find(t, "workflows").Imports {
		for _, banned := range []string{
			"encoding/json", "net/http", "math/rand", "crypto/rand", "github.com/google/uuid", "os",
			"entgo.io/", module + "/ent", "database/sql", "github.com/jackc/", module + "/internal/postgres",
			"go.temporal.io/sdk/client",
		} {
			require.False(t, imported == banned || strings.HasPrefix(imported, strings.TrimSuffix(banned, "/")+"/"), "workflows imports %s", imported)
		}
	}
}

// A TestMain of the test kit starts the servers under plain go test, and reports the package as not run on a
// machine without Postgres. Without it, the tests fail there.
func TestPackagesWhoseTestsNeedServersHaveTheTestMainForIt(t *testing.T) {
	t.Parallel()
	for _, p := range all(t) {
		needing, main := "", false
		of := p
		of.GoFiles = slices.Concat(p.TestGoFiles, p.XTestGoFiles)
		files(t, of, 0, func(name string, f *ast.File) {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					kit, ok := n.X.(*ast.Ident)
					if ok && kit.Name == "testkit" && slices.Contains([]string{"Database", "ImpatientDatabase", "EmptyDatabase", "NewDatabase", "Store", "Namespace", "LeaseNamespace"}, n.Sel.Name) {
						needing = name
					}
				case *ast.FuncDecl:
					main = main || n.Name.Name == "TestMain"
				}
				return true
			})
		})
		require.True(t, needing == "" || main, "%s/%s uses a server: add func TestMain(m *testing.M) { testkit.Main(m) }", p.name(), needing)
	}
}

// files calls fn with each file of a package except its tests.
func files(t *testing.T, p pkg, mode parser.Mode, fn func(name string, f *ast.File)) {
	t.Helper()
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, mode)
		require.NoError(t, err)
		fn(name, f)
	}
}

func TestEveryConstructorWorksWithoutFx(t *testing.T) {
	t.Parallel()
	for _, p := range all(t) {
		if strings.HasPrefix(p.name(), "cmd/") {
			continue
		}
		files(t, p, parser.ImportsOnly, func(name string, f *ast.File) {
			for _, imported := range f.Imports {
				path, err := strconv.Unquote(imported.Path.Value)
				require.NoError(t, err)
				require.False(t, strings.HasPrefix(path, "go.uber.org/fx") && name != "fx.go", "%s/%s imports %s", p.name(), name, path)
			}
		})
	}
}

// The edge presents entities, but only the domain reads and writes them.
func TestTheEdgeHoldsNoDatabase(t *testing.T) {
	t.Parallel()
	for _, edge := range []pkg{find(t, "api"), find(t, "web")} {
		holdsNoDatabase(t, edge)
	}
}

func holdsNoDatabase(t *testing.T, edge pkg) {
	t.Helper()
	for _, imported := range edge.Imports {
		for _, banned := range []string{"entgo.io/", "github.com/jackc/", "database/sql", "go.temporal.io/"} {
			require.False(t, strings.HasPrefix(imported, banned), "%s imports %s", edge.name(), imported)
		}
	}
	files(t, edge, 0, func(name string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := s.X.(*ast.Ident); ok && of.Name == "db" {
				require.NotContains(t, []string{"Client", "Tx", "NewClient", "Open", "FromContext"}, s.Sel.Name, name)
			}
			return true
		})
	})
}
