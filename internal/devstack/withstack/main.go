// Command withstack runs a command beside a Postgres and a Temporal that exist
// only for it:
//
//	go run ./internal/devstack/withstack -- go test ./...
//
// The command finds them by EARSHOT_TEST_POSTGRES_URL (a superuser's URL of the
// database "postgres") and TEMPORAL_ADDRESS. Its input and output are its own,
// withstack speaks on stderr only and exits as the command did. Nothing is kept.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/devstack"
)

const (
	// exitUsage and exitBroken tell our own faults from the command's, whose
	// codes are mostly 1 and 2; the shell's convention starts at 126.
	exitUsage  = 64
	exitBroken = 125
	// signaled is added to a signal's number, as shells do.
	signaled = 128
	// stopTime bounds the end of both servers; what they keep is thrown away.
	stopTime = 10 * time.Second
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: withstack -- command [argument …]")
		os.Exit(exitUsage)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	code, err := run(args, signals, os.Stderr)
	if err != nil {
		fmt.Fprintf(os.Stderr, "withstack: %v\n", err)
	}
	os.Exit(code)
}

// run starts the servers, runs the command and stops the servers. It returns
// the exit code, and an error if something else than the command went wrong.
func run(args []string, signals <-chan os.Signal, progress io.Writer) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &stack{report: func(format string, args ...any) {
		fmt.Fprintf(progress, "withstack: "+format+"\n", args...)
	}}
	defer func() {
		if closed := s.close(); closed != nil && err == nil {
			code, err = exitBroken, closed
		}
	}()
	started := make(chan error, 1)
	go func() { started <- s.start(ctx) }()
	select {
	case received := <-signals:
		cancel()
		<-started //nolint:errcheck // our own cancel is all that it could report
		return signalCode(received), nil
	case err := <-started:
		if err != nil {
			return exitBroken, err
		}
	}
	return runCommand(args, s.env(), signals)
}

// runCommand forwards signals to the command until it ends. The command shares
// our process group, because one of its own couldn't read from the terminal.
func runCommand(args, env []string, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return exitBroken, errors.Wrapf(err, "start %s", args[0])
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // what it would say stands in ProcessState
		close(ended)
	}()
	for {
		select {
		case received := <-signals:
			_ = cmd.Process.Signal(received) // fails only when it has ended
		case <-ended:
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
				return signalCode(status.Signal()), nil
			}
			return cmd.ProcessState.ExitCode(), nil
		}
	}
}

func signalCode(received os.Signal) int {
	if number, ok := received.(syscall.Signal); ok {
		return signaled + int(number)
	}
	return exitBroken
}

// stack is the two servers and their directory.
type stack struct {
	report   devstack.Report
	dir      string
	postgres *devstack.Postgres
	temporal *devstack.Temporal
}

func (s *stack) start(ctx context.Context) error {
	root, err := devstack.RepositoryRoot()
	if err != nil {
		return err
	}
	binary, err := devstack.TemporalBinary(ctx, root, s.report)
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "earshot-withstack-"); err != nil {
		return errors.Wrap(err, "make a temporary directory")
	}
	if err := os.Chmod(s.dir, 0o711); err != nil { // lets the user postgres pass
		return errors.Wrap(err, "open the temporary directory")
	}
	began := time.Now()
	s.postgres, err = devstack.StartPostgres(ctx, devstack.PostgresOptions{Dir: s.postgresDir(), Report: s.report})
	if err != nil {
		return err
	}
	s.temporal, err = devstack.StartTemporal(ctx, devstack.TemporalOptions{
		Dir: filepath.Join(s.dir, "temporal"), Binary: binary, UIPort: devstack.Headless, Report: s.report,
	})
	if err != nil {
		return err
	}
	s.report("Postgres on port %d and Temporal on %s are ready after %s",
		s.postgres.Port(), s.temporal.Address(), time.Since(began).Round(100*time.Millisecond))
	return nil
}

func (s *stack) postgresDir() string { return filepath.Join(s.dir, "postgres") }

func (s *stack) env() []string {
	return append(os.Environ(),
		"EARSHOT_TEST_POSTGRES_URL="+s.postgres.URL("postgres"),
		"TEMPORAL_ADDRESS="+s.temporal.Address())
}

// close stops what was started and removes the directory.
func (s *stack) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	var failed []error
	if s.temporal != nil {
		failed = append(failed, s.temporal.Stop(ctx))
	}
	if s.postgres != nil {
		failed = append(failed, s.postgres.Stop(ctx))
	}
	if s.dir != "" {
		failed = append(failed, devstack.Remove(s.postgresDir()), os.RemoveAll(s.dir))
	}
	return errors.Join(failed...)
}
