package devstack

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-faster/errors"

	"earshot/internal/devstack/process"
)

const (
	// locationFile, in the caller's directory, contains the path of the cluster. It exists if the
	// cluster's account can't enter the caller's directory.
	locationFile = "location"
	superuser    = "postgres"
)

// cluster has the paths of a Postgres cluster. Home contains data and password. It is the caller's
// directory or the one in its location file.
type cluster struct {
	dir, home string
	user      *account
}

func (c cluster) data() string         { return filepath.Join(c.home, "data") }
func (c cluster) halfMade() string     { return filepath.Join(c.home, "data.new") }
func (c cluster) passwordFile() string { return filepath.Join(c.home, "password") }

// openCluster finds the cluster of dir, or chooses a place for a new one, and the user that runs
// it. It creates directories but no data.
func openCluster(ctx context.Context, dir string, bin binaries, report Report) (cluster, error) {
	c := cluster{dir: dir, home: cmp.Or(recordedHome(dir), dir)}
	var err error
	if c.user, err = postgresAccount(c.data()); err != nil {
		return c, err
	}
	if c.user == nil {
		return c, nil
	}
	if out, err := c.user.command(ctx, "/", bin.postgres(), "--version").CombinedOutput(); err != nil {
		return c, errors.Wrapf(err, "run %s as user %s: %s", bin.postgres(), c.user.name, bytes.TrimSpace(out))
	}
	if c.home != dir {
		return c, makeHome(c.home)
	}
	if c.canEnter(ctx, dir, bin) {
		return c, nil
	}
	if c.home, err = c.moveHome(ctx, bin); err != nil {
		return c, err
	}
	report.Say("user %s can't enter %s, so the data lies in %s", c.user.name, dir, c.home)
	return c, nil
}

// canEnter tests access by starting a program, because file modes don't reflect access lists and
// mounts.
func (c cluster) canEnter(ctx context.Context, dir string, bin binaries) bool {
	return c.user.command(ctx, dir, bin.postgres(), "--version").Run() == nil
}

// moveHome creates a home that the account can enter and records it in dir.
func (c cluster) moveHome(ctx context.Context, bin binaries) (string, error) {
	for _, home := range otherHomes(c.dir) {
		if _, err := os.Stat(filepath.Dir(home)); err != nil {
			continue
		}
		if err := makeHome(home); err != nil {
			return "", err
		}
		if !c.canEnter(ctx, home, bin) {
			_ = os.Remove(home)
			continue
		}
		if err := os.WriteFile(filepath.Join(c.dir, locationFile), []byte(home+"\n"), 0o644); err != nil {
			return "", errors.Wrap(err, "note where the data lies")
		}
		return home, nil
	}
	return "", errors.Errorf("user %s can enter neither %s nor %s: use a directory that it can enter", c.user.name, c.dir, os.TempDir())
}

// makeHome creates the directory. In a shared parent directory, it refuses one that another user
// created, because that could be an attack.
func makeHome(home string) error {
	if err := os.Mkdir(home, 0o755); err != nil && !os.IsExist(err) {
		return errors.Wrap(err, "make a directory for the data")
	}
	info, err := os.Lstat(home)
	if err != nil {
		return errors.Wrap(err, "look at the directory for the data")
	}
	if owner, _ := ownerOf(home); !info.IsDir() || owner != uint32(os.Geteuid()) {
		return errors.Errorf("%s is not a directory of ours: remove it", home)
	}
	return nil
}

// otherHomes lists the places for the data of dir outside of it. Their names derive from the path,
// so that two checkouts never share a cluster.
func otherHomes(dir string) []string {
	sum := sha256.Sum256([]byte(dir))
	name := "earshot-" + hex.EncodeToString(sum[:5]) // 40 bits distinguish the checkouts of one machine
	return []string{filepath.Join("/var/lib/postgresql", name), filepath.Join(os.TempDir(), name)}
}

// recordedHome returns the home in the location file, or "" without one. It ignores a file that was
// copied with a checkout: removing the copy must never remove the original's data.
func recordedHome(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, locationFile))
	if err != nil {
		return ""
	}
	home := strings.TrimSpace(string(text))
	if !filepath.IsAbs(home) || filepath.Base(home) != filepath.Base(otherHomes(dir)[0]) {
		return ""
	}
	return home
}

// madeBy returns the major Postgres version of the cluster in dir, or 0 if there is no cluster.
func madeBy(dir string) int {
	text, err := os.ReadFile(filepath.Join(cmp.Or(recordedHome(dir), dir), "data", "PG_VERSION"))
	if err != nil {
		return 0
	}
	major, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return major
}

// password returns the superuser's password and first creates the cluster if necessary. A rename
// puts the cluster in place, so a killed initdb leaves no partial cluster.
func (c cluster) password(ctx context.Context, bin binaries, o PostgresOptions) (string, error) {
	if _, err := os.Stat(c.data()); err == nil {
		text, err := os.ReadFile(c.passwordFile())
		if err != nil {
			return "", errors.Wrap(err, "read the cluster's password")
		}
		return strings.TrimSpace(string(text)), nil
	}
	o.Report.Say("making a Postgres %d cluster in %s", bin.major, c.home)
	password := cmp.Or(o.Password, rand.Text())
	if err := c.writePassword(password); err != nil {
		return "", err
	}
	if err := c.makeHalf(); err != nil {
		return "", err
	}
	command := func(program string, args ...string) *exec.Cmd {
		return c.user.command(ctx, "/", filepath.Join(bin.dir, program), args...)
	}
	var err error
	if o.Make != nil {
		err = o.Make(c.halfMade(), command)
	} else {
		err = c.initdb(command, o.Durable)
	}
	if err != nil {
		return "", err
	}
	if err := os.Rename(c.halfMade(), c.data()); err != nil {
		return "", errors.Wrap(err, "put the cluster in place")
	}
	return password, nil
}

func (c cluster) writePassword(password string) error {
	_ = os.Remove(c.passwordFile()) // left by a killed initdb, possibly with wrong mode and owner
	if err := os.WriteFile(c.passwordFile(), []byte(password+"\n"), 0o600); err != nil {
		return errors.Wrap(err, "write the cluster's password")
	}
	return c.user.own(c.passwordFile())
}

// makeHalf creates the empty directory for the new data.
func (c cluster) makeHalf() error {
	if err := os.RemoveAll(c.halfMade()); err != nil {
		return errors.Wrap(err, "remove a half-made cluster")
	}
	if err := os.Mkdir(c.halfMade(), 0o700); err != nil {
		return errors.Wrap(err, "make the data directory")
	}
	return c.user.own(c.halfMade())
}

func (c cluster) initdb(command func(program string, args ...string) *exec.Cmd, durable bool) error {
	args := append([]string{
		"--pgdata=" + c.halfMade(), "--username=" + superuser, "--pwfile=" + c.passwordFile(),
		"--auth=scram-sha-256", "--encoding=UTF8",
	}, localeArgs()...)
	if !durable {
		args = append(args, "--no-sync")
	}
	if out, err := command("initdb", args...).CombinedOutput(); err != nil {
		return errors.Wrapf(err, "run initdb: %s", bytes.TrimSpace(out))
	}
	return nil
}

// localeArgs selects sorting by code point, which is the same on all machines. The locale still
// supports non-ASCII letters in lower() and ILIKE.
func localeArgs() []string {
	switch runtime.GOOS {
	case "linux":
		return []string{"--locale=C.UTF-8"}
	case "darwin": // has no C.UTF-8
		return []string{"--locale=C", "--lc-ctype=en_US.UTF-8"}
	default:
		return []string{"--locale=C"}
	}
}

// Remove stops a leftover Postgres in dir and removes the cluster wherever it lies: its data,
// password and logs. It removes dir itself if nothing else is in it. A dir without a cluster is no
// error. Remove fails if a running program uses the cluster or a file can't be removed.
func Remove(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return errors.Wrap(err, "find the directory")
	}
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return nil
	}
	held, err := process.TakeClaim(context.Background(), dir, postgresName, syscall.SIGINT, nil)
	if err != nil {
		return err
	}
	defer held.Release()
	if home := recordedHome(dir); home != "" {
		if err := os.RemoveAll(home); err != nil {
			return errors.Wrap(err, "remove the data")
		}
	}
	for _, name := range []string{"data", "data.new", "password", locationFile, postgresName + ".log", postgresName + ".log.old", postgresName + ".lock"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return errors.Wrap(err, "remove the cluster")
		}
	}
	_ = os.Remove(dir) // fails if other files are in it
	return nil
}
