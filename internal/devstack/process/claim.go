package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"github.com/gofrs/flock"
)

const (
	// leftoverGrace is the time for a leftover server to end. A fast shutdown of Postgres writes a
	// checkpoint, which takes seconds on a slow disk.
	leftoverGrace = 20 * time.Second
	// leftoverPoll is the polling interval for its end, because only a child process can be waited
	// for.
	leftoverPoll = 20 * time.Millisecond
)

// Claim is the exclusive right to run one server in one directory. The lock ends with this process,
// even after a crash. A file beside it records the server's process, so that the next owner can
// stop a leftover server.
type Claim struct {
	lock    *flock.Flock
	pidFile string
}

// TakeClaim locks dir for the server with the given name. It stops a server that an earlier owner
// left running. It fails if another program holds the claim or the leftover can't be stopped.
func TakeClaim(ctx context.Context, dir, name string, stop syscall.Signal, report Report) (*Claim, error) {
	c := &Claim{
		lock:    flock.New(filepath.Join(dir, name+".lock")),
		pidFile: filepath.Join(dir, name+".pid"),
	}
	locked, err := c.lock.TryLock()
	if err != nil {
		return nil, errors.Wrapf(err, "lock %s", c.lock.Path())
	}
	if !locked {
		return nil, errors.Errorf("%s in %s is in use by another running program: stop that one first, or use another directory", name, dir)
	}
	if err := c.stopLeftover(ctx, name, stop, report); err != nil {
		return nil, errors.Join(err, c.lock.Close())
	}
	return c, nil
}

// record stores the server's process for the next owner. It includes the command line, because
// another program may soon have the same process id.
func (c *Claim) record(pid int, args []string) error {
	text := fmt.Sprintf("%d\n%s\n", pid, strings.Join(args, " "))
	if err := os.WriteFile(c.pidFile, []byte(text), 0o644); err != nil {
		return errors.Wrap(err, "record the process")
	}
	return nil
}

// forget removes the record after the process has ended.
func (c *Claim) forget() { _ = os.Remove(c.pidFile) }

// Release gives up the claim. The lock file stays, because removing it would let two other
// processes lock two different files.
func (c *Claim) Release() { _ = c.lock.Close() }

func (c *Claim) stopLeftover(ctx context.Context, name string, stop syscall.Signal, report Report) error {
	text, err := os.ReadFile(c.pidFile)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return errors.Wrap(err, "read the recorded process")
	}
	number, command, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	pid, err := strconv.Atoi(number)
	if err != nil || !runs(pid, command) {
		c.forget()
		return nil
	}
	report.Say("stopping %s (process %d), left behind by a program that was killed", name, pid)
	if err := syscall.Kill(pid, stop); err != nil && !errors.Is(err, syscall.ESRCH) {
		return errors.Wrapf(err, "stop process %d", pid)
	}
	ctx, cancel := context.WithTimeout(ctx, leftoverGrace)
	defer cancel()
	if err := Poll(ctx, leftoverPoll, func() (bool, error) { return !runs(pid, command), nil }); err != nil {
		return errors.Wrapf(err, "wait for the end of process %d, which was asked to stop", pid)
	}
	c.forget()
	return nil
}

// runs reports whether the process exists and runs the recorded command. A zombie has no command
// line, so it doesn't match.
func runs(pid int, command string) bool {
	current, err := commandLine(pid)
	return err == nil && current == strings.TrimSpace(command)
}
