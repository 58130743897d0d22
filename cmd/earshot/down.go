package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"
)

const (
	// downTimeout is above what every part gets to stop: the service drains
	// requests, starts and attempts, then come the servers.
	downTimeout = 3 * time.Minute
	// downPulse is how often a person who waits hears that it goes on.
	downPulse = 5 * time.Second
)

// downResult is what `down --json` prints.
type downResult struct {
	Status string `json:"status"` // stopped or not_running
	PID    int    `json:"pid,omitempty"`
	Dir    string `json:"dir"`
}

func newDownCommand() *cobra.Command {
	var (
		dir    string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop what `earshot up` runs; the data stays",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := findStateDir(dir, os.Environ())
			if err != nil {
				return err
			}
			said := cmd.OutOrStdout()
			if asJSON {
				said = cmd.ErrOrStderr()
			}
			stopped, err := bringDown(cmd.Context(), d, said)
			if err != nil {
				return err
			}
			result := downResult{Status: "not_running", Dir: string(d)}
			if stopped != nil {
				result.Status, result.PID = "stopped", stopped.pid
			} else {
				fmt.Fprintf(said, "Nothing is running in %s\n", shortPath(string(d)))
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), result)
			}
			return nil
		},
	}
	addDirFlag(cmd, &dir)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON, the rest on stderr")
	return cmd
}

// bringDown asks the stack of the directory to stop and waits until it has. It
// returns what it stopped, nil when nothing ran.
func bringDown(ctx context.Context, d stateDir, said io.Writer) (*running, error) {
	holder, err := findRunning(d)
	if err != nil || holder == nil {
		return nil, err
	}
	began := time.Now()
	log := endOf(d.upLog()) // what a detached one says from now on
	if log != nil {
		defer func() { _ = log.Close() }()
	}
	if err := syscall.Kill(holder.pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return nil, errors.Wrapf(err, "stop process %d", holder.pid)
	}
	fmt.Fprintf(said, "Asked process %d to stop\n", holder.pid)
	ctx, cancel := context.WithTimeoutCause(ctx, downTimeout, errors.Errorf(
		"process %d is still stopping after %s; `kill -9 %d` ends it at once and the data survives", holder.pid, downTimeout, holder.pid))
	defer cancel()
	if err := awaitEnd(ctx, d, holder.pid, log, said); err != nil {
		return nil, err
	}
	fmt.Fprintf(said, "Down after %s\n", inSeconds(time.Since(began)))
	return holder, nil
}

// awaitEnd shows the log, or a pulse, until the process has given the directory
// up. It isn't our child, so it has to be looked at.
func awaitEnd(ctx context.Context, d stateDir, pid int, log *os.File, said io.Writer) error {
	began, silent := time.Now(), time.Now()
	for {
		holder, err := findRunning(d)
		if err != nil {
			return err
		}
		if log != nil {
			if n, _ := io.Copy(said, log); n > 0 {
				silent = time.Now()
			}
		}
		if holder == nil || holder.pid != pid {
			return nil
		}
		if time.Since(silent) > downPulse {
			fmt.Fprintf(said, "still stopping (%s)\n", inSeconds(time.Since(began)))
			silent = time.Now()
		}
		if pause(ctx) == nil {
			continue
		}
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			return cause
		}
		return errInterrupted
	}
}

// endOf opens a log for what comes next, nil if there is none.
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
