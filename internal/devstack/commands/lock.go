package commands

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/go-faster/errors"

	"earshot/internal/devstack/statedir"
)

// upLock is the exclusive right to run the stack of one directory. It ends when this process ends,
// even after a crash.
//
// It is a POSIX record lock and not a flock, because the kernel reports the process that holds a
// record lock. So `earshot down` never signals a process id that is only recorded in a file.
// Closing any handle of the file releases a record lock, so this process opens the file only once.
type upLock struct{ file *os.File }

// Running is an `earshot up` process that holds a directory.
type Running struct {
	PID int
	// BaseURL is empty until the service answers, and again after it stops.
	BaseURL string
}

func (r Running) String() string {
	if r.BaseURL == "" {
		return fmt.Sprintf("process %d, starting or stopping", r.PID)
	}
	return fmt.Sprintf("process %d, %s", r.PID, r.BaseURL)
}

// wholeFile describes a lock on the whole file, to acquire or to query it.
func wholeFile(kind int16) *syscall.Flock_t {
	return &syscall.Flock_t{Type: kind, Whence: io.SeekStart}
}

// takeLock acquires the lock. The error names the process that holds it.
func takeLock(d statedir.Dir) (*upLock, error) {
	file, err := os.OpenFile(d.File("up.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, errors.Wrap(err, "open the lock")
	}
	err = syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, wholeFile(syscall.F_WRLCK))
	if err == nil {
		l := &upLock{file: file}
		return l, l.announce("")
	}
	defer func() { _ = file.Close() }()
	if !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EACCES) {
		return nil, errors.Wrapf(err, "lock %s", file.Name())
	}
	holder, err := holderOf(file)
	if err != nil {
		return nil, err
	}
	if holder == nil {
		return nil, errors.Errorf("%s was held until just now; try again", file.Name())
	}
	return nil, errors.Errorf("this stack runs already (%s); `%s` stops it", holder, d.Command("down"))
}

// findRunning returns the process that holds the directory, or nil. The process that holds the lock
// must not call it: see upLock.
func findRunning(d statedir.Dir) (*Running, error) {
	file, err := os.OpenFile(d.File("up.lock"), os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "open the lock")
	}
	defer func() { _ = file.Close() }()
	return holderOf(file)
}

func holderOf(file *os.File) (*Running, error) {
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
	return &Running{PID: int(held.Pid), BaseURL: strings.TrimSpace(baseURL)}, nil
}

// announce writes the service's address for other commands; "" means that it doesn't answer yet.
// The process id in the file is for human readers; programs ask the kernel.
func (l *upLock) announce(baseURL string) error {
	if err := l.file.Truncate(0); err != nil {
		return errors.Wrap(err, "write the lock")
	}
	if _, err := l.file.WriteAt(fmt.Appendf(nil, "%d\n%s\n", os.Getpid(), baseURL), 0); err != nil {
		return errors.Wrap(err, "write the lock")
	}
	return nil
}

// release gives up the directory. The file stays, because removing it would let two other processes
// lock two different files.
func (l *upLock) release() { _ = l.file.Close() }
