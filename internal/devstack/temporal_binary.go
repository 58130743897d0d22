package devstack

import (
	"bufio"
	"bytes"
	"context"
	"debug/buildinfo"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/gofrs/flock"
)

const (
	cliModule  = "github.com/temporalio/cli"
	cliPackage = cliModule + "/cmd/temporal"
	// buildLockPoll is how often another program's build is looked after; a
	// build takes minutes.
	buildLockPoll = 200 * time.Millisecond
	// buildStopWait is what an interrupted build gets to end its compilers.
	buildStopWait = 10 * time.Second
)

// cliModules decide what the dev server is. A new version of any other module
// in tools/go.mod is no reason to build it again.
var cliModules = []string{cliModule, "github.com/temporalio/ui-server/v2", "go.temporal.io/server"}

// TemporalBinary returns the path of a temporal CLI: the one on the PATH, else
// .earshot/bin/temporal below root, the repository's root, which it builds
// first if it is missing or not of the versions in tools/go.mod. The first
// build takes 3 to 6 minutes on two cores and is reported; programs that ask at
// the same time wait for one build. The error says what is missing or quotes
// the compiler.
func TemporalBinary(ctx context.Context, root string, report Report) (string, error) {
	if path, err := exec.LookPath(temporalName); err == nil && exec.CommandContext(ctx, path, "--version").Run() == nil {
		report.say("using %s", path)
		return path, nil
	}
	return builtCLI(ctx, root, report)
}

// builtCLI is TemporalBinary without a look at the PATH.
func builtCLI(ctx context.Context, root string, report Report) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", errors.Wrap(err, "find the repository")
	}
	wanted, err := cliVersions(filepath.Join(root, "tools", "go.mod"))
	if err != nil {
		return "", err
	}
	binary := filepath.Join(root, ".earshot", "bin", temporalName)
	if upToDate(binary, wanted) {
		return binary, nil
	}
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return "", errors.Wrap(err, "make the directory for the Temporal CLI")
	}
	unlock, err := lockBuild(ctx, binary, report)
	if err != nil {
		return "", err
	}
	defer unlock()
	if upToDate(binary, wanted) {
		return binary, nil
	}
	if err := buildCLI(ctx, root, binary, report); err != nil {
		return "", err
	}
	return binary, nil
}

// cliVersions reads the versions of cliModules from the go.mod at path.
func cliVersions(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Wrap(err, "read the wanted version of the Temporal CLI")
	}
	all := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "require "))
		if len(fields) > 1 {
			all[fields[0]] = fields[1]
		}
	}
	wanted := map[string]string{}
	for _, module := range cliModules {
		if all[module] == "" {
			return nil, errors.Errorf("%s does not require %s", path, module)
		}
		wanted[module] = all[module]
	}
	return wanted, nil
}

// upToDate reads the versions that the Go linker wrote into the binary.
func upToDate(binary string, wanted map[string]string) bool {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return false
	}
	built := map[string]string{info.Main.Path: info.Main.Version}
	for _, dep := range info.Deps {
		built[dep.Path] = dep.Version
	}
	maps.DeleteFunc(built, func(path, _ string) bool { return wanted[path] == "" })
	return maps.Equal(built, wanted)
}

func lockBuild(ctx context.Context, binary string, report Report) (unlock func(), err error) {
	lock := flock.New(binary + ".lock")
	locked, err := lock.TryLock()
	if err == nil && !locked {
		report.say("another program builds the Temporal CLI, waiting for it")
		stopPulse := pulse(report, "the other program's build")
		defer stopPulse()
		_, err = lock.TryLockContext(ctx, buildLockPoll)
	}
	if err != nil {
		return nil, errors.Wrap(err, "lock the build of the Temporal CLI")
	}
	return func() { _ = lock.Close() }, nil
}

func buildCLI(ctx context.Context, root, binary string, report Report) error {
	if _, err := exec.LookPath("go"); err != nil {
		return errors.Wrap(err, "build the Temporal CLI: install Go, or put a temporal CLI on the PATH (https://docs.temporal.io/cli)")
	}
	report.say("building the Temporal CLI from tools/go.mod: the first time this takes 3 to 6 minutes on two cores")
	fresh := binary + ".new" // a killed build must not leave half a binary in place
	cmd := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(root, "tools"), "-o", fresh, cliPackage)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = buildStopWait
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	began := time.Now()
	stopPulse := pulse(report, "the build")
	defer stopPulse()
	if err := cmd.Run(); err != nil {
		return errors.Wrapf(err, "build the Temporal CLI: %s", lastLines(output.String(), failureLines))
	}
	if err := os.Rename(fresh, binary); err != nil {
		return errors.Wrap(err, "put the Temporal CLI in place")
	}
	report.say("built the Temporal CLI in %s", time.Since(began).Round(time.Second))
	return nil
}
