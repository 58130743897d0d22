package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/go-faster/errors"
)

// upLock is the right to run the stack of one directory. It ends with this
// process, however that ends.
//
// It is a POSIX record lock and not a flock, because for these the kernel tells
// who holds it: `earshot down` never signals a process number that a file
// merely remembers. Their trap is that closing any handle of the file gives the
// lock up, so this process opens the file once only.
type upLock struct{ file *os.File }

// running is the `earshot up` that holds a directory.
type running struct {
	pid int
	// baseURL is empty until the service answers, and again once it stops.
	baseURL string
}

func (r running) String() string {
	if r.baseURL == "" {
		return fmt.Sprintf("process %d, starting or stopping", r.pid)
	}
	return fmt.Sprintf("process %d, %s", r.pid, r.baseURL)
}

// wholeFile asks for, or about, a lock of the kind.
func wholeFile(kind int16) *syscall.Flock_t {
	return &syscall.Flock_t{Type: kind, Whence: io.SeekStart}
}

// takeLock returns the lock, or who has it.
func takeLock(d stateDir) (*upLock, *running, error) {
	file, err := os.OpenFile(d.lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, errors.Wrap(err, "open the lock")
	}
	err = syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, wholeFile(syscall.F_WRLCK))
	if err == nil {
		l := &upLock{file: file}
		return l, nil, l.announce("")
	}
	defer func() { _ = file.Close() }()
	if !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EACCES) {
		return nil, nil, errors.Wrapf(err, "lock %s", file.Name())
	}
	holder, err := holderOf(file)
	if err == nil && holder == nil {
		err = errors.Errorf("%s was held until just now; try again", file.Name())
	}
	return nil, holder, err
}

// findRunning returns who holds the directory, nil when nobody does. A process
// that holds it itself must not ask: see upLock.
func findRunning(d stateDir) (*running, error) {
	file, err := os.OpenFile(d.lock(), os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "open the lock")
	}
	defer func() { _ = file.Close() }()
	return holderOf(file)
}

func holderOf(file *os.File) (*running, error) {
	held := wholeFile(syscall.F_WRLCK)
	if err := syscall.FcntlFlock(file.Fd(), syscall.F_GETLK, held); err != nil {
		return nil, errors.Wrapf(err, "ask who holds %s", file.Name())
	}
	if held.Type == syscall.F_UNLCK {
		return nil, nil
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, errors.Wrap(err, "read the lock")
	}
	_, baseURL, _ := strings.Cut(string(text), "\n")
	return &running{pid: int(held.Pid), baseURL: strings.TrimSpace(baseURL)}, nil
}

// announce writes for others where the service answers; "" is nowhere yet. The
// process number stands there for people, programs ask the kernel.
func (l *upLock) announce(baseURL string) error {
	if err := l.file.Truncate(0); err != nil {
		return errors.Wrap(err, "write the lock")
	}
	if _, err := l.file.WriteAt(fmt.Appendf(nil, "%d\n%s\n", os.Getpid(), baseURL), 0); err != nil {
		return errors.Wrap(err, "write the lock")
	}
	return nil
}

// release gives the directory up. The file stays: removing it would let two
// others lock two different files.
func (l *upLock) release() { _ = l.file.Close() }
