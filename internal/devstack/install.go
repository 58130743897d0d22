package devstack

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/needs"
)

const (
	// debianDropIns is where postgresql-common reads extra settings for the
	// cluster that Debian's package makes by itself.
	debianDropIns = "/etc/postgresql-common/createcluster.d"
	// installPulse is how often a person who waits hears that it goes on.
	installPulse = 15 * time.Second
)

// canInstall says whether this is root on Debian, Ubuntu or a child of them.
func canInstall() bool {
	if os.Geteuid() != 0 {
		return false
	}
	if _, err := os.Stat("/etc/debian_version"); err != nil {
		return false
	}
	_, err := exec.LookPath("apt-get")
	return err == nil
}

// installCommands are those that install packages, for apt-get.
func installCommands(packages ...string) [][]string {
	return [][]string{{"update"}, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)}
}

// installPostgres installs Debian's package. The package would also make and
// start a cluster of its own on port 5432, which nobody asked for; a setting
// that lies there during the installation keeps it from that.
func installPostgres(ctx context.Context, report Report) error {
	if err := permission(ctx); err != nil {
		return err
	}
	report.say("no Postgres found, installing it with apt-get: this takes a minute or two")
	return aptInstall(ctx, report, needs.Named(postgresName).Debian)
}

// Install installs packages with apt-get, for a caller who was asked to do that. Elsewhere than
// on Debian and its children, or without the rights, the error names them.
func Install(ctx context.Context, report Report, packages []string) error {
	list := strings.Join(packages, " ")
	if !canInstall() {
		return errors.Errorf("this can install packages only as root on Debian or Ubuntu; install these, or your system's counterparts: %s", list)
	}
	report.say("installing with apt-get: %s", list)
	return aptInstall(ctx, report, packages...)
}

func aptInstall(ctx context.Context, report Report, packages ...string) error {
	undo, err := withoutMainCluster()
	if err != nil {
		return err
	}
	defer undo()
	for _, args := range installCommands(packages...) {
		if err := aptGet(ctx, report, args...); err != nil {
			return err
		}
	}
	return nil
}

func withoutMainCluster() (undo func(), err error) {
	if err := os.MkdirAll(debianDropIns, 0o755); err != nil {
		return nil, errors.Wrap(err, "prepare the installation of Postgres")
	}
	path := filepath.Join(debianDropIns, "earshot.conf")
	if err := os.WriteFile(path, []byte("create_main_cluster = false\n"), 0o644); err != nil {
		return nil, errors.Wrap(err, "prepare the installation of Postgres")
	}
	return func() { _ = os.Remove(path) }, nil
}

func aptGet(ctx context.Context, report Report, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	// Another apt-get, like the machine's own updates, is waited for.
	cmd.Args = append(cmd.Args, "-o", "DPkg::Lock::Timeout=120")
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	stopPulse := pulse(report, func() string { return "apt-get " + args[0] })
	defer stopPulse()
	if err := cmd.Run(); err != nil {
		return errors.Wrapf(err, "run apt-get %s: %s", args[0], lastLines(output.String(), failureLines))
	}
	return nil
}

// pulse reports every 15 s that an action still runs, until it is stopped. The text names the action and its
// progress.
func pulse(report Report, action func() string) (stop func()) {
	began := time.Now()
	tick := time.NewTicker(installPulse)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				report.say("%s is still running (%s)", action(), time.Since(began).Round(time.Second))
			}
		}
	}()
	return func() {
		tick.Stop()
		close(done)
	}
}
