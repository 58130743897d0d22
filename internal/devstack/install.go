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

	"earshot/internal/devstack/process"
	"earshot/internal/needs"
)

const (
	// debianDropIns is a directory of settings for the cluster that Debian's package creates.
	debianDropIns = "/etc/postgresql-common/createcluster.d"
	// installPulse is the interval of progress lines.
	installPulse = 15 * time.Second
)

// canInstall reports whether the caller is root on Debian, Ubuntu or a derivative.
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

// installCommands returns the apt-get commands that install packages.
func installCommands(packages ...string) [][]string {
	return [][]string{{"update"}, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)}
}

// installPostgres installs Debian's package. By default the package also creates and starts a
// cluster on port 5432. A temporary setting prevents this during the installation.
func installPostgres(ctx context.Context, report Report) error {
	if err := permission(ctx); err != nil {
		return err
	}
	report.Say("no Postgres found, installing it with apt-get: this takes a minute or two")
	return aptInstall(ctx, report, needs.Named(postgresName).Debian)
}

// Install installs packages with apt-get. The caller must have the user's permission. On other
// systems, or without the rights, the error lists the packages.
func Install(ctx context.Context, report Report, packages []string) error {
	list := strings.Join(packages, " ")
	if !canInstall() {
		return errors.Errorf("this can install packages only as root on Debian or Ubuntu; install these, or your system's counterparts: %s", list)
	}
	report.Say("installing with apt-get: %s", list)
	return aptInstall(ctx, report, packages...)
}

func aptInstall(ctx context.Context, report Report, packages ...string) error {
	setting := filepath.Join(debianDropIns, "earshot.conf")
	err := os.MkdirAll(debianDropIns, 0o755)
	if err == nil {
		err = os.WriteFile(setting, []byte("create_main_cluster = false\n"), 0o644)
	}
	if err != nil {
		return errors.Wrap(err, "prepare the installation of Postgres")
	}
	defer func() { _ = os.Remove(setting) }()
	for _, args := range installCommands(packages...) {
		if err := aptGet(ctx, report, args...); err != nil {
			return err
		}
	}
	return nil
}

func aptGet(ctx context.Context, report Report, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	// Wait for another apt-get, such as the machine's own updates.
	cmd.Args = append(cmd.Args, "-o", "DPkg::Lock::Timeout=120")
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	stopPulse := pulse(report, func() string { return "apt-get " + args[0] })
	defer stopPulse()
	if err := cmd.Run(); err != nil {
		return errors.Wrapf(err, "run apt-get %s: %s", args[0], process.LastLines(output.String()))
	}
	return nil
}

// pulse reports every 15 s that an action still runs, until stop is called. The text names the
// action and its progress.
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
				report.Say("%s is still running (%s)", action(), time.Since(began).Round(time.Second))
			}
		}
	}()
	return func() {
		tick.Stop()
		close(done)
	}
}
