package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/tier"
)

// nodeProject is a project in a directory of its own. npm and the compiler write there and not
// into the repository.
type nodeProject struct {
	t   *testing.T
	dir string
	env []string
}

// newNodeProject copies the files of a folder and installs the packages of its lock file.
func newNodeProject(t *testing.T, folder string, env ...string) *nodeProject {
	t.Helper()
	tier.Needs(t, "node", "npm")
	n := &nodeProject{t: t, dir: t.TempDir(), env: append(cleanEnviron(), env...)}
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, f := range files {
		if !f.Type().IsRegular() {
			continue // node_modules and results of a manual run
		}
		require.NoError(t, copyFile(filepath.Join(folder, f.Name()), filepath.Join(n.dir, f.Name())))
	}
	n.install()
	return n
}

// installations has a function for each lock file, which installs its packages at the first call
// and returns their folder.
var installations sync.Map

// install gives the project its own node_modules. Projects with the same lock file share one
// `npm ci` and, by hard links, the files of the packages. A project must not change these files.
func (n *nodeProject) install() {
	n.t.Helper()
	lock := n.read("package.json") + n.read("package-lock.json")
	key := fmt.Sprintf("%x", sha256.Sum256([]byte(lock)))
	once, _ := installations.LoadOrStore(key, sync.OnceValues(func() (string, error) {
		return installPackages(filepath.Join(filepath.Dir(earshot()), "packages", key), n.dir)
	}))
	folder, err := once.(func() (string, error))()
	require.NoError(n.t, err)
	require.NoError(n.t, linkPackages(folder, filepath.Join(n.dir, "node_modules")))
}

// installPackages runs `npm ci` for the lock file of a project, in another directory. It does not
// end with the test that happens to need the packages first.
func installPackages(dir, project string) (folder string, err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		if err := copyFile(filepath.Join(project, name), filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	// No package needs its script to run.
	cmd := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline")
	cmd.Dir, cmd.Env = dir, cleanEnviron()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Wrapf(err, "npm ci: %s", out)
	}
	return filepath.Join(dir, "node_modules"), nil
}

// npmState is the list that npm keeps of a node_modules. npm writes it in place, so projects do
// not share it, and npm trusts it only if it is newer than the folders.
const npmState = ".package-lock.json"

// linkPackages copies a node_modules by hard links.
func linkPackages(from, to string) error {
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, inside)
		switch {
		case entry.IsDir():
			return os.Mkdir(target, 0o750)
		case inside == npmState:
			return nil
		case entry.Type() == fs.ModeSymlink: // a program of a package
			points, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(points, target)
		default:
			return os.Link(path, target)
		}
	})
	if err != nil {
		return err
	}
	err = copyFile(filepath.Join(from, npmState), filepath.Join(to, npmState))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a project without packages
	}
	return err
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

// copied returns a copy of the project for a case that runs beside others and may write files.
func (n *nodeProject) copied(t *testing.T, env ...string) *nodeProject {
	t.Helper()
	c := &nodeProject{t: t, dir: t.TempDir(), env: append(slices.Clone(n.env), env...)}
	copySources(t, n.dir, c.dir)
	require.NoError(t, linkPackages(filepath.Join(n.dir, "node_modules"), filepath.Join(c.dir, "node_modules")))
	return c
}

// run runs a command to its end and returns its output.
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
