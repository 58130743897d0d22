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
)

const module = "earshot"

// allowed is the one-way rule: for each package, the packages of this module that it may import,
// without tests. An entry that ends in /... also stands for all packages below it, on either side.
// Every new package needs an entry.
var allowed = map[string][]string{
	// The bottom layer, which depends on few or no other packages.
	"webhook":             nil,
	"internal/batch":      nil,
	"internal/config":     {"webhook"}, // the retry schedule
	"internal/needs":      nil,
	"internal/devstack":   {"internal/needs"},
	"internal/etag":       nil,
	"internal/clientaddr": nil,
	"internal/inflight":   nil,
	"internal/machine":    nil,
	"internal/memory":     nil,
	"internal/problem":    nil,
	"internal/metadata":   {"internal/problem"},
	"internal/slug":       {"internal/problem"},
	"internal/publicid":   nil,
	"internal/seal":       nil,
	"internal/wordlist":   nil,
	"internal/event":      {"internal/publicid"},
	// Empty in an ordinary build. Packages with failpoints import it.
	"internal/failpoint": nil,
	// The starts and signals of durable jobs, as values.
	"internal/jobs":             {"internal/publicid"},
	"internal/mail":             {"internal/config"},
	"internal/searchattributes": nil,
	// The text of the API guide and its pages.
	"docs/api":       nil,
	"docs/generate":  {"internal/config"},
	"internal/guide": {"docs/api"},
	"internal/send":  {"webhook"},
	// The metrics of a process.
	"internal/telemetry": {"internal/config"},
	// The data layer.
	"ent/schema":     {"internal/publicid"},
	"ent/db/...":     {"ent/db/...", "ent/schema", "internal/publicid"},
	"ent/migrations": nil,
	// authoring has the rules for new migrations. No program of the service links it.
	"internal/migrate":           {"ent/migrations", "internal/store"},
	"internal/migrate/authoring": {"ent/db/...", "internal/migrate", "internal/store"},
	"internal/store":             {"ent/db/...", "internal/config", "internal/inflight", "internal/publicid", "internal/telemetry"},

	// The domain. It owns the port that starts deliveries, so it never depends on a workflow.
	"internal/page": {"internal/memory", "internal/problem", "internal/publicid", "internal/store"},
	"internal/change": {
		"ent/db/...", "internal/batch", "internal/config", "internal/event", "internal/failpoint", "internal/jobs", "internal/problem", "internal/publicid",
		"internal/seal", "internal/store", "internal/telemetry",
	},
	"internal/access": {
		"ent/db/...", "internal/batch", "internal/change", "internal/page", "internal/problem", "internal/publicid",
		"internal/store", "internal/wordlist",
	},
	"internal/contacts": {
		"ent/db/...", "internal/batch", "internal/change", "internal/config", "internal/event", "internal/metadata", "internal/page",
		"internal/problem", "internal/publicid", "internal/store",
	},
	"internal/webhooks": {
		"ent/db/...", "internal/batch", "internal/change", "internal/config", "internal/event", "internal/failpoint", "internal/inflight", "internal/jobs",
		"internal/page", "internal/problem", "internal/publicid", "internal/seal", "internal/send", "internal/store", "webhook",
	},
	"internal/feedback": {
		"ent/db/...", "internal/change", "internal/config", "internal/contacts", "internal/event", "internal/jobs", "internal/page",
		"internal/problem", "internal/publicid", "internal/slug", "internal/store", "internal/wordlist",
	},
	"internal/subscribers": {
		"ent/db/...", "internal/change", "internal/config", "internal/contacts", "internal/jobs", "internal/page", "internal/problem",
		"internal/publicid", "internal/ratelimit", "internal/store",
	},
	"internal/interactions": {
		"ent/db/...", "internal/change", "internal/config", "internal/contacts", "internal/failpoint", "internal/feedback", "internal/jobs",
		"internal/page", "internal/problem", "internal/publicid", "internal/ratelimit", "internal/seal", "internal/store", "internal/subscribers",
		"internal/wordlist",
	},
	// It reads and erases all data of a person, across the other packages of the domain.
	"internal/subjects": {
		"ent/db/...", "internal/access", "internal/change", "internal/contacts", "internal/event", "internal/failpoint", "internal/jobs",
		"internal/page", "internal/problem", "internal/publicid", "internal/retention", "internal/seal", "internal/store",
	},
	"internal/backfill": {
		"ent/db/...", "internal/change", "internal/contacts", "internal/jobs", "internal/problem", "internal/publicid", "internal/seal", "internal/store",
	},
	"internal/widget": {
		"ent/db/...", "internal/access", "internal/change", "internal/contacts", "internal/page", "internal/problem", "internal/publicid",
		"internal/seal", "internal/store",
	},
	// The rules for sharing resources, without any I/O.
	"internal/delivery/fairness": {"internal/change", "internal/memory", "internal/publicid", "internal/send", "webhook"},
	"activities": {
		"internal/backfill", "internal/batch", "internal/change", "internal/delivery", "internal/delivery/fairness", "internal/failpoint",
		"internal/feedback", "internal/interactions", "internal/jobs", "internal/mail", "internal/problem", "internal/publicid",
		"internal/ratelimit", "internal/retention", "internal/seal", "internal/send", "internal/store", "internal/subjects",
		"internal/subscribers", "internal/telemetry", "internal/webhooks",
	},
	"workflows": {"activities", "internal/publicid"},
	// Starts workflows in Temporal. It knows workflows by their names and arguments.
	"dispatch": {
		"activities", "internal/change", "internal/config", "internal/failpoint", "internal/delivery/fairness", "internal/jobs", "internal/publicid",
		"internal/telemetry", "workflows",
	},
	// The parts below the edges, as one list for the program and the tests.
	"internal/app": {
		"dispatch", "internal/access", "internal/backfill", "internal/change", "internal/contacts", "internal/delivery", "internal/feedback",
		"internal/interactions", "internal/migrate", "internal/ratelimit", "internal/store", "internal/subjects", "internal/subscribers",
		"internal/telemetry", "internal/webhooks", "internal/widget",
	},
	// The edges of the service.
	"api/gen": nil,
	// Validates requests against the contract.
	"api/contract":     {"internal/problem"},
	"internal/keyring": {"internal/access", "internal/change"},
	"api": {
		"api/contract", "api/gen", "ent/db/...", "internal/access", "internal/change", "internal/clientaddr", "internal/config",
		"internal/contacts", "internal/etag", "internal/feedback", "internal/guide", "internal/interactions", "internal/keyring",
		"internal/memory", "internal/page", "internal/problem", "internal/publicid", "internal/ratelimit", "internal/subjects",
		"internal/subscribers", "internal/telemetry", "internal/webhooks", "internal/widget",
	},
	// The parts of the pages that don't depend on the service.
	"web/markup":    {"web/messages", "web/pagecache"},
	"web/messages":  {"internal/problem"},
	"web/pagecache": {"internal/inflight", "internal/memory"},
	"web/palette":   nil,
	"web/preview":   {"web/palette"},
	// The public pages. They are mounted beside the operations.
	"web": {
		"api", "ent/db/...", "internal/access", "internal/change", "internal/config", "internal/etag", "internal/feedback",
		"internal/interactions", "internal/memory", "internal/page", "internal/problem", "internal/publicid", "internal/ratelimit",
		"internal/subscribers", "internal/telemetry", "internal/widget", "web/markup", "web/messages", "web/pagecache", "web/palette",
		"web/preview",
	},
	// It knows operations only through the contract.
	"mcp": {"api", "internal/problem"},
	"worker": {
		"activities", "dispatch", "internal/config", "internal/machine", "internal/mail", "internal/seal", "internal/searchattributes",
		"internal/send", "internal/store", "internal/telemetry", "workflows",
	},
	// Puts everything together, for use and for tests.
	"cmd/...":                     {"..."},
	"internal/devstack/withstack": {"internal/devstack", "internal/needs"},
	// Tests that need only the servers must not run again after an edit of the service.
	"internal/testkit": {
		"ent/migrations", "internal/devstack", "internal/migrate", "internal/searchattributes", "internal/store", "internal/telemetry",
		"internal/testkit/tier", "webhook",
	},
	// Tests that don't import the pages, the tools or the worker must not run again after an edit
	// of those.
	"internal/testkit/apptest": {
		"api", "dispatch", "ent/db/...", "internal/access", "internal/app", "internal/backfill", "internal/change", "internal/config",
		"internal/event", "internal/interactions", "internal/publicid", "internal/send", "internal/store", "internal/telemetry",
		"internal/testkit",
	},
	"internal/testkit/tier/...": {"internal/needs", "internal/testkit/tier"},
	"bench/...":                 {"..."},
	"e2e/...":                   {"..."},
	"internal/architecture":     nil,
	"sdk/generate":              nil,
	"ent":                       nil,
	"ent/generate":              nil,
	"ent/newmigration":          {"ent/migrations", "internal/migrate", "internal/migrate/authoring", "internal/store"},
	// The checks of the service contain no code of the service.
	"e2e/faults/ledger":   nil,
	"e2e/faults/hostile":  nil,
	"e2e/faults/outside":  nil,
	"e2e/faults/receiver": {"e2e/faults/ledger"},
	"e2e/faults/check":    {"e2e/faults/ledger"},
	"internal/delivery":   {"internal/publicid", "internal/store", "internal/telemetry"},
	"internal/ratelimit":  {"ent/db/...", "internal/batch", "internal/config", "internal/publicid", "internal/store"},
	"internal/retention":  {"internal/change", "internal/publicid", "internal/store"},
	// Rows for tests of SQL.
	"internal/testkit/fixture": {
		"ent/db/...", "internal/contacts", "internal/delivery", "internal/publicid", "internal/ratelimit", "internal/store", "internal/testkit",
	},
}

// onlyTests are packages that no program may import.
var onlyTests = []string{"internal/testkit", "bench", "e2e"}

// testedFromOutside are packages whose tests start the whole service, which contains the package
// itself.
var testedFromOutside = []string{
	"api", "dispatch", "internal/contacts", "internal/delivery", "internal/feedback", "internal/interactions", "internal/retention", "internal/store",
	"internal/webhooks", "mcp",
	"web", "worker",
}

// pkg is a package as `go list` describes it. TestGoFiles are the tests inside the package.
type pkg struct {
	ImportPath, Dir      string
	GoFiles, TestGoFiles []string
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
	out, err := golist("-json=ImportPath,Dir,GoFiles,TestGoFiles,Imports", "./...")
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
	for entry := range allowed {
		if covers(entry, name) && len(entry) > len(best) {
			best = entry
		}
	}
	return allowed[best], best != ""
}

func TestPackagesImportInOneDirectionOnly(t *testing.T) {
	t.Parallel()
	for _, p := range all(t) {
		may, known := ruleFor(p.name())
		require.True(t, known, "the table in this test doesn't say what %s may import", p.name())
		for _, imported := range p.own() {
			require.True(t, slices.ContainsFunc(may, func(entry string) bool { return covers(entry, imported) }),
				"%s must not import %s", p.name(), imported)
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
			"entgo.io/", module + "/ent", "database/sql", "github.com/jackc/", module + "/internal/store",
			"go.temporal.io/sdk/client",
		} {
			require.False(t, imported == banned || strings.HasPrefix(imported, strings.TrimSuffix(banned, "/")+"/"), "workflows imports %s", imported)
		}
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
