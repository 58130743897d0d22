package devstack

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-faster/errors"
	"github.com/gofrs/flock"
	"golang.org/x/mod/semver"

	"earshot/internal/devstack/process"
)

const (
	cliModule = "github.com/temporalio/cli"
	// buildLockPoll is the polling interval for another program's build, which takes minutes.
	buildLockPoll = 200 * time.Millisecond
	// buildStopWait is the time for an interrupted build to end its compilers.
	buildStopWait = 10 * time.Second
)

// TemporalProgram is one of Temporal's programs, built from tools/go.mod.
type TemporalProgram struct {
	// Name is the file name, and Title the name in reports.
	Name, Title string
	// Package is the path of its main package.
	Package string
	// Modules determine the version of the program. A new version of any other module in
	// tools/go.mod doesn't cause a rebuild.
	Modules []string
	// Takes describes the duration of the first build, and Instead an alternative for users without
	// Go.
	Takes, Instead string
}

// TemporalServer is the module of Temporal's server, whose version is in the name of a built program.
const TemporalServer = "go.temporal.io/server"

var cliProgram = TemporalProgram{
	Name: temporalName, Title: "the Temporal CLI", Package: cliModule + "/cmd/temporal",
	// SQLite is newer than the CLI asks for (v1.34). With versions before v1.51, requests that a client cancels
	// during a query break the server: the rows stay open, and each later request is "interrupted (9)"
	// (until v1.40.1), or a database in memory is deleted.
	Modules: []string{cliModule, "github.com/temporalio/ui-server/v2", TemporalServer, "modernc.org/sqlite"},
	Takes:   "2 to 6 minutes on two cores",
	Instead: ", or put a temporal CLI on the PATH (https://docs.temporal.io/cli)",
}

// TemporalBinary returns the path of a temporal CLI. It prefers the one on the PATH, if its server
// is at least as new as in tools/go.mod of the repository at root. Otherwise it builds one from
// there. Built programs are in the user's cache directory, one for each version, so that a second
// checkout builds none. The first build takes 2 to 6 minutes on two cores and is reported. Programs
// that need it at the same time wait for one build. The error names the missing programs or quotes
// the compiler.
func TemporalBinary(ctx context.Context, root string, report Report) (string, error) {
	path, err := exec.LookPath(temporalName)
	if err != nil {
		return cliProgram.Built(ctx, root, report)
	}
	wanted, err := cliProgram.versions(toolsMod(root))
	if err != nil {
		return "", err
	}
	said, err := exec.CommandContext(ctx, path, "--version").Output()
	if err == nil && supported(string(said), wanted[TemporalServer]) {
		report.Say("using %s", path)
		return path, nil
	}
	report.Say("%s is not used: Temporal %s or a later one of the same major version is needed", path, wanted[TemporalServer])
	return cliProgram.Built(ctx, root, report)
}

var serverPattern = regexp.MustCompile(`Server (\d+\.\d+\.\d+)`)

// supported reports whether the output of `temporal --version` names the wanted server version, or
// a later one of the same major version.
func supported(said, wanted string) bool {
	match := serverPattern.FindStringSubmatch(said)
	if match == nil {
		return false
	}
	has := "v" + match[1]
	return semver.Major(has) == semver.Major(wanted) && semver.Compare(has, wanted) >= 0
}

// Built returns the path of the program in the user's cache directory. It builds the program first if
// it is missing. Root is the repository with tools/go.mod.
func (p TemporalProgram) Built(ctx context.Context, root string, report Report) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", errors.Wrap(err, "find the cache directory of built programs")
	}
	binary, err := p.builtIn(ctx, filepath.Join(cache, "earshot"), root, report)
	if err != nil {
		return "", err
	}
	if err := p.link(binary, root); err != nil {
		report.Say("%v", err) // a missing link only inconveniences users at a terminal
	}
	return binary, nil
}

// link links the program into .earshot/bin of the repository at root, under its own name. The
// recipes of docs/operating.md use it there.
func (p TemporalProgram) link(binary, root string) error {
	path := filepath.Join(root, ".earshot", "bin", p.Name)
	if to, err := os.Readlink(path); err == nil && to == binary {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return errors.Wrapf(err, "link %s", p.Title)
	}
	// A rename is atomic, because other programs may create the link at the same time.
	fresh := path + "." + rand.Text()
	if err := os.Symlink(binary, fresh); err != nil {
		return errors.Wrapf(err, "link %s", p.Title)
	}
	if err := os.Rename(fresh, path); err != nil {
		return errors.Wrapf(err, "link %s", p.Title)
	}
	return nil
}

func (p TemporalProgram) builtIn(ctx context.Context, cache, root string, report Report) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", errors.Wrap(err, "find the repository")
	}
	wanted, err := p.versions(toolsMod(root))
	if err != nil {
		return "", err
	}
	binary := filepath.Join(cache, p.file(wanted))
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", errors.Wrapf(err, "make the directory for %s", p.Title)
	}
	unlock, err := lockBuild(ctx, cache, report)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if err := p.build(ctx, root, binary, report); err != nil {
		return "", err
	}
	return binary, nil
}

func toolsMod(root string) string { return filepath.Join(root, "tools", "go.mod") }

// file returns the file name of the program, which is different for each set of versions.
func (p TemporalProgram) file(versions map[string]string) string {
	sum := sha256.New()
	for _, module := range p.Modules {
		fmt.Fprintln(sum, module, versions[module])
	}
	return fmt.Sprintf("%s-%s-%x", p.Name, versions[TemporalServer], sum.Sum(nil)[:4])
}

// versions reads the versions of the program's modules from the go.mod at path.
func (p TemporalProgram) versions(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Wrapf(err, "read the wanted version of %s", p.Title)
	}
	all := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "require "))
		if len(fields) > 1 {
			all[fields[0]] = fields[1]
		}
	}
	wanted := map[string]string{}
	for _, module := range p.Modules {
		if all[module] == "" {
			return nil, errors.Errorf("%s does not require %s", path, module)
		}
		wanted[module] = all[module]
	}
	return wanted, nil
}

// lockBuild takes one lock for all programs, because two concurrent builds would both compile their
// common packages.
func lockBuild(ctx context.Context, dir string, report Report) (unlock func(), err error) {
	lock := flock.New(filepath.Join(dir, temporalName+".lock"))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		report.Say("another program builds Temporal, waiting for it")
		stopPulse := pulse(report, func() string { return "the other program's build" })
		defer stopPulse()
		_, err = lock.TryLockContext(ctx, buildLockPoll)
	}
	if err != nil {
		return nil, errors.Wrap(err, "lock the build of Temporal")
	}
	return func() { _ = lock.Close() }, nil
}

func (p TemporalProgram) build(ctx context.Context, root, binary string, report Report) error {
	if _, err := exec.LookPath("go"); err != nil {
		return errors.Wrapf(err, "build %s: install Go%s", p.Title, p.Instead)
	}
	report.Say("building %s from tools/go.mod: the first time this takes %s", p.Title, p.Takes)
	fresh := binary + ".new" // a killed build must not leave a partial binary in place
	goTool := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = filepath.Join(root, "tools")
		cmd.Env = append(os.Environ(), "GOWORK=off")
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = buildStopWait
		return cmd
	}
	var output buildOutput
	began := time.Now()
	stopPulse := pulse(report, output.progress)
	defer stopPulse()
	// If this fails, the build fails too and explains the reason.
	packages, _ := goTool("list", "-deps", p.Package).Output()
	output.all.Store(int64(bytes.Count(packages, []byte("\n"))))
	cmd := goTool("build", "-v", "-o", fresh, p.Package)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return errors.Wrapf(err, "build %s: %s", p.Title, output.failure())
	}
	if err := os.Rename(fresh, binary); err != nil {
		return errors.Wrapf(err, "put %s in place", p.Title)
	}
	report.Say("built %s in %s", p.Title, time.Since(began).Round(time.Second))
	return nil
}

// buildOutput is the output of go build -v, which has one line for each package.
type buildOutput struct {
	all, done atomic.Int64
	text      bytes.Buffer
}

func (o *buildOutput) Write(text []byte) (int, error) {
	o.done.Add(int64(bytes.Count(text, []byte("\n"))))
	return o.text.Write(text)
}

var packageLines = regexp.MustCompile(`(?m)^[A-Za-z0-9._~/-]+\n`)

// failure returns the end of the output without the lines of packages.
func (o *buildOutput) failure() string {
	return process.LastLines(packageLines.ReplaceAllString(o.text.String(), ""))
}

// progress describes the progress of the build. Packages in the build cache are not counted.
func (o *buildOutput) progress() string {
	if o.done.Load() == 0 {
		return "the download of the sources"
	}
	return fmt.Sprintf("the build, %d of at most %d packages,", o.done.Load(), o.all.Load())
}
