// Command withstack runs a command with a Postgres and a Temporal that exist only for it:
//
//	go run ./internal/devstack/withstack -- go test ./...
//
// The command gets the servers' addresses in EARSHOT_TEST_POSTGRES_URL (a superuser's URL of the
// database "postgres") and TEMPORAL_ADDRESS. EARSHOT_TEST_TOOLS lists the tools on the machine. All
// three are the same in each run of a checkout, so that Go can reuse cached test results. If
// another run of the checkout is active, the ports differ. The command uses the terminal's input
// and output. withstack itself writes only to stderr, exits with the command's code, and keeps no
// data. If it is killed, the next run of the checkout removes its data.
//
// With -install it first installs the tools that tests need and the machine lacks
// (earshot/internal/needs), with apt-get on Debian and Ubuntu. With -without, if there is no
// Postgres, the command runs without these variables. The tests then report that they were not run.
// Without -without, a missing Postgres is an error.
package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"github.com/gofrs/flock"
	psdisk "github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/mem"

	"earshot/internal/devstack"
	"earshot/internal/needs"
)

const (
	// exitUsage and exitBroken distinguish withstack's errors from the command's, whose codes are
	// mostly 1 and 2. Shells reserve codes from 126 on.
	exitUsage  = 64
	exitBroken = 125
	// signaled is added to a signal's number, as in shells.
	signaled = 128
	// stopTime bounds the end of both servers. Their data is discarded anyway.
	stopTime = 10 * time.Second
)

func main() {
	install := flag.Bool("install", false, "first install the tools that tests need, with apt-get")
	without := flag.Bool("without", false, "run the command without the servers where there is no Postgres, for tests that then say so")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: withstack [-install] [-without] [--] [command [argument …]]")
	}
	flag.Parse()
	if flag.NArg() == 0 && !*install {
		flag.Usage()
		os.Exit(exitUsage)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if *install {
		if err := installTools(context.Background(), os.Stderr); err != nil {
			fmt.Fprintf(os.Stderr, "withstack: %v\n", err)
			os.Exit(exitBroken)
		}
		if flag.NArg() == 0 {
			return
		}
	}
	code, err := run(flag.Args(), *without, signals, os.Stderr)
	if err != nil {
		fmt.Fprintf(os.Stderr, "withstack: %v\n", err)
	}
	os.Exit(code)
}

func reportTo(progress io.Writer) devstack.Report {
	return func(format string, args ...any) { fmt.Fprintf(progress, "withstack: "+format+"\n", args...) }
}

// installTools installs the packages of the missing tools. On systems other than Debian and Ubuntu,
// or without the rights, the error lists the packages.
func installTools(ctx context.Context, progress io.Writer) error {
	var missing []needs.Tool
	for _, t := range needs.Tools {
		if !t.Found(ctx) {
			missing = append(missing, t)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := devstack.Install(ctx, reportTo(progress), needs.Packages(missing)); err != nil {
		return errors.Wrapf(err, "install the tools that are missing (by hand: %s)", needs.Command(missing))
	}
	return nil
}

// run starts the servers, runs the command and stops the servers. It returns the command's exit
// code, and an error if any other part failed.
func run(args []string, without bool, signals <-chan os.Signal, progress io.Writer) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &stack{report: reportTo(progress), without: without, tools: needs.Look(ctx)}
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

// runCommand forwards signals to the command until it ends. The command shares our process group,
// because a command in a group of its own couldn't read from the terminal.
func runCommand(args, env []string, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return exitBroken, errors.Wrapf(err, "start %s", args[0])
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // ProcessState has the result
		close(ended)
	}()
	for {
		select {
		case received := <-signals:
			_ = cmd.Process.Signal(received) // fails only if the process has ended
		case <-ended:
			if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
				return signalCode(status.Signal()), nil
			}
			return cmd.ProcessState.ExitCode(), nil
		}
	}
}

func signalCode(received os.Signal) int { return signaled + int(received.(syscall.Signal)) }

// stack is the two servers and their directory.
type stack struct {
	report   devstack.Report
	without  bool
	tools    []string
	dir      string
	same     *sameEachRun
	postgres *devstack.Postgres
	temporal *devstack.Temporal
}

func (s *stack) start(ctx context.Context) error {
	if s.without && !slices.Contains(s.tools, "postgres") {
		s.report("there is no Postgres: tests that need one are not run")
		return nil
	}
	root, err := devstack.RepositoryRoot()
	if err != nil {
		return err
	}
	if s.same, err = newSameEachRun(root, s.report); err != nil {
		return err
	}
	temporal, err := devstack.TemporalBinary(ctx, root, s.report)
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp(inMemory(ctx), dirPrefix); err != nil {
		return errors.Wrap(err, "make a temporary directory")
	}
	if err := s.same.keepDir(s.dir); err != nil {
		return err
	}
	if err := os.Chmod(s.dir, 0o711); err != nil { // lets the user postgres pass
		return errors.Wrap(err, "open the temporary directory")
	}
	began := time.Now()
	s.postgres, err = devstack.StartPostgres(ctx, devstack.PostgresOptions{
		Dir: postgresDir(s.dir), Port: s.same.postgres, Password: s.same.password, Report: s.report,
	})
	if err != nil {
		return err
	}
	s.temporal, err = devstack.StartTemporal(ctx, devstack.TemporalOptions{
		Dir: filepath.Join(s.dir, "temporal"), Binary: temporal, Port: s.same.temporal, UIPort: devstack.Headless, Report: s.report,
	})
	if err != nil {
		return err
	}
	s.report("Postgres on port %d and Temporal on %s are ready after %s",
		s.postgres.Port(), s.temporal.Address(), time.Since(began).Round(100*time.Millisecond))
	return nil
}

const (
	// sharedMemory is a file system in memory on Linux.
	sharedMemory = "/dev/shm"
	// clusterRoom has room for a run of all tests: 520 databases of 10 MB and the log.
	clusterRoom = 8 << 30
)

// inMemory returns a directory in memory for the servers' files if twice clusterRoom is free.
// Otherwise it returns "" for the default directory. Each test creates a database of 400 files,
// which on a disk costs more time than the test.
func inMemory(ctx context.Context) string {
	disk, err := psdisk.UsageWithContext(ctx, sharedMemory)
	if err != nil || disk.Free < clusterRoom {
		return ""
	}
	memory, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil || memory.Available < 2*clusterRoom {
		return ""
	}
	return sharedMemory
}

func postgresDir(dir string) string { return filepath.Join(dir, "postgres") }

// removeDir removes the directory of a run, and first ends a Postgres that a killed run left in it.
func removeDir(dir string) error {
	return errors.Join(devstack.Remove(postgresDir(dir)), os.RemoveAll(dir))
}

func (s *stack) env() []string {
	env := append(os.Environ(), needs.Variable+"="+strings.Join(s.tools, ","))
	if s.temporal == nil {
		return env
	}
	return append(env,
		"EARSHOT_TEST_POSTGRES_URL="+s.postgres.URL("postgres"),
		"TEMPORAL_ADDRESS="+s.temporal.Address())
}

// close stops the servers and removes the directory.
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
	if s.temporal != nil && s.postgres != nil {
		s.report("processor time: %s in Postgres, %s in Temporal",
			s.postgres.Used().Round(time.Second), s.temporal.Used().Round(time.Second))
	}
	if s.dir != "" {
		failed = append(failed, removeDir(s.dir))
	}
	if s.same != nil {
		failed = append(failed, s.same.lock.Close())
	}
	return errors.Join(failed...)
}

// sameEachRun has the values that stay the same in each run of a checkout, so that test results can
// be cached. Only one run at a time can use them.
type sameEachRun struct {
	lock *flock.Flock
	// record is a file with the directory of the run. A run that is killed leaves both behind.
	record             string
	password           string
	postgres, temporal int // 0 is a free port
}

// newSameEachRun derives the ports from the path of the checkout and keeps a password in its
// .earshot directory. If another run holds the lock, this run uses free ports.
func newSameEachRun(root string, report devstack.Report) (*sameEachRun, error) {
	dir := filepath.Join(root, ".earshot")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, errors.Wrap(err, "make .earshot")
	}
	s := &sameEachRun{lock: flock.New(filepath.Join(dir, "withstack.lock"))}
	alone, err := s.lock.TryLock()
	if err != nil {
		return nil, errors.Wrap(err, "look for another run of this checkout")
	}
	if !alone {
		report("another run of this checkout is under way: the ports are others, and results of tests are not used again")
		return s, nil
	}
	s.record = filepath.Join(dir, "withstack.dir")
	if err := s.removeLeft(report); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "withstack.password")
	text, err := os.ReadFile(file)
	if err != nil {
		text = []byte(rand.Text())
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return nil, errors.Wrap(err, "keep the password of the tests' Postgres")
		}
	}
	s.password = string(text)
	sum := sha256.Sum256([]byte(root))
	// The two ports are consecutive ones of devstack's range, so that the checkouts of a machine
	// rarely collide.
	s.postgres = devstack.LowestPort + 2*int(binary.BigEndian.Uint16(sum[:])%((devstack.EphemeralPorts-devstack.LowestPort)/2))
	s.temporal = s.postgres + 1
	return s, nil
}

// dirPrefix begins the names of the directories of all runs.
const dirPrefix = "earshot-withstack-"

// removeLeft removes the directory of a run that was killed. It is in memory and has 10 MB for each
// database of a test.
func (s *sameEachRun) removeLeft(report devstack.Report) error {
	left, err := os.ReadFile(s.record)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return errors.Wrap(err, "look for the directory of the last run")
	}
	dir := string(left)
	if _, err := os.Stat(dir); err != nil || !strings.HasPrefix(filepath.Base(dir), dirPrefix) {
		return nil
	}
	report("removing %s, which a killed run left behind", dir)
	if err := removeDir(dir); err != nil {
		return errors.Wrap(err, "remove the directory of a killed run")
	}
	return nil
}

// keepDir records the directory of this run, unless another run of the checkout is under way.
func (s *sameEachRun) keepDir(dir string) error {
	if s.record == "" {
		return nil
	}
	if err := os.WriteFile(s.record, []byte(dir), 0o600); err != nil {
		return errors.Wrap(err, "record the directory")
	}
	return nil
}
