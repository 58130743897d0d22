package commands

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"earshot/internal/devstack/statedir"

	"github.com/go-faster/errors"
)

const (
	// downTimeout exceeds the sum of the stop timeouts: the service drains requests, workflow
	// starts and attempts, then the servers stop.
	downTimeout = 3 * time.Minute
	// downPulse is the interval of progress lines during a long wait.
	downPulse = 5 * time.Second
)

// Down tells the stack of the directory to stop and waits until it has stopped. It returns the
// stopped stack, or nil if none ran. Said receives lines of progress.
func Down(ctx context.Context, d statedir.Dir, said io.Writer) (*Running, error) {
	holder, err := findRunning(d)
	if err != nil || holder == nil {
		return nil, err
	}
	began := time.Now()
	log := endOf(upLog(d)) // output of a detached stack from now on
	if log != nil {
		defer func() { _ = log.Close() }()
	}
	if err := syscall.Kill(holder.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return nil, errors.Wrapf(err, "stop process %d", holder.PID)
	}
	fmt.Fprintf(said, "Asked process %d to stop\n", holder.PID)
	ctx, cancel := context.WithTimeoutCause(ctx, downTimeout, errors.Errorf(
		"process %d is still stopping after %s; `kill -9 %d` ends it at once and the data survives", holder.PID, downTimeout, holder.PID))
	defer cancel()
	if err := awaitEnd(ctx, d, holder.PID, log, said); err != nil {
		return nil, err
	}
	fmt.Fprintf(said, "Down after %s\n", inSeconds(time.Since(began)))
	return holder, nil
}

// awaitEnd prints the log, or a pulse, until the process has released the directory. It polls,
// because the process isn't our child.
func awaitEnd(ctx context.Context, d statedir.Dir, pid int, log *os.File, said io.Writer) error {
	began, silent := time.Now(), time.Now()
	return poll(ctx, func() (bool, error) {
		holder, err := findRunning(d)
		if err != nil {
			return false, err
		}
		if log != nil {
			if n, _ := io.Copy(said, log); n > 0 {
				silent = time.Now()
			}
		}
		if holder == nil || holder.PID != pid {
			return true, nil
		}
		if time.Since(silent) > downPulse {
			fmt.Fprintf(said, "still stopping (%s)\n", inSeconds(time.Since(began)))
			silent = time.Now()
		}
		return false, nil
	})
}

// endOf opens a log at its end, to read new lines. It returns nil if there is no log.
func endOf(path string) *os.File {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		_ = file.Close()
		return nil
	}
	return file
}
