package devstack

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/go-faster/errors"

	"earshot/internal/needs"
)

// oldestPostgres is the oldest release that was still maintained when this code was written. Older
// releases are ignored.
const oldestPostgres = 14

// binaries is a directory with postgres and initdb of one release.
type binaries struct {
	dir   string
	major int
}

func (b binaries) postgres() string { return filepath.Join(b.dir, "postgres") }
func (b binaries) initdb() string   { return filepath.Join(b.dir, "initdb") }

// findBinaries returns the Postgres to use. A cluster's data requires the wanted major version; 0
// accepts the first one that is new enough. If none is installed and the caller is root on Debian,
// it installs one, with permission.
func findBinaries(ctx context.Context, wanted int, report Report) (binaries, error) {
	found := installed(ctx)
	if ctx.Err() != nil { // a cancelled search doesn't mean that nothing is installed
		return binaries{}, ctx.Err()
	}
	if len(found) == 0 && canInstall() {
		if err := installPostgres(ctx, report); err != nil {
			return binaries{}, err
		}
		found = installed(ctx)
	}
	return pick(found, wanted)
}

func pick(found []binaries, wanted int) (binaries, error) {
	if len(found) == 0 {
		return binaries{}, errors.Errorf("no Postgres found: install it with %s", installHint())
	}
	for _, candidate := range found {
		if candidate.major == wanted || wanted == 0 && candidate.major >= oldestPostgres {
			return candidate, nil
		}
	}
	if wanted > 0 {
		return binaries{}, errors.Errorf("the data was made by Postgres %d, found is %d in %s: install %d or remove the data",
			wanted, found[0].major, found[0].dir, wanted)
	}
	return binaries{}, errors.Errorf("Postgres %d in %s is too old, %d or newer is needed: install it with %s",
		found[0].major, found[0].dir, oldestPostgres, installHint())
}

// installed lists the Postgres releases on the machine: first those on the PATH, then the rest,
// newest first.
func installed(ctx context.Context) []binaries {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	named := readBinaries(ctx, dirs)
	var rest []string
	for _, pattern := range needs.PostgresDirs {
		matches, _ := filepath.Glob(pattern) // the patterns are valid
		rest = append(rest, matches...)
	}
	others := readBinaries(ctx, rest)
	slices.SortStableFunc(others, func(a, b binaries) int { return b.major - a.major })
	return append(named, others...)
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// readBinaries returns the directories that contain a whole server. It resolves links, because the
// programs search for their share directory beside themselves.
func readBinaries(ctx context.Context, dirs []string) []binaries {
	var found []binaries
	for _, dir := range dirs {
		path, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
		if err != nil {
			continue
		}
		b := binaries{dir: filepath.Dir(path)}
		if _, err := os.Stat(b.initdb()); err != nil {
			continue
		}
		out, err := exec.CommandContext(ctx, path, "--version").Output()
		if err != nil {
			continue
		}
		if match := versionPattern.FindSubmatch(out); match != nil {
			b.major, _ = strconv.Atoi(string(match[1]))
			found = append(found, b)
		}
	}
	return found
}

func installHint() string {
	if runtime.GOOS == "darwin" {
		return "`brew install postgresql@16`"
	}
	return "`sudo apt-get install postgresql` or your system's counterpart"
}
