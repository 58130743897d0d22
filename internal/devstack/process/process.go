// Package process runs servers that belong to this program, such as a private Postgres.
//
// A Ctrl-C in the terminal doesn't reach a server, so that the program can stop everything in order.
// If the program is killed, its servers end: immediately on Linux, elsewhere at the next start in
// the same directory.
package process

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-faster/errors"
)

const (
	// readyPause is the interval between readiness checks. It is short compared to a start of one
	// or two seconds, and long compared to a check.
	readyPause = 25 * time.Millisecond
	// killWait is the wait after each stronger signal. On SIGQUIT Postgres gives its own children 5
	// s before it kills them.
	killWait = 7 * time.Second
)

// passing are words in the log of a failed start, in lower case. With them, another start may
// succeed. The first is for a port that another process took in the meantime. The second is for
// Postgres: backends of a killed server hold its memory until they notice that they are orphans.
var passing = []string{"address already in use", "pre-existing shared memory"}

// Report receives one line of progress per call, without a newline. Several goroutines may call it.
// A nil Report is always allowed.
type Report func(format string, args ...any)

// Say calls r unless it is nil.
func (r Report) Say(format string, args ...any) {
	if r != nil {
		r(format, args...)
	}
}

// Server describes a server and its start.
type Server struct {
	// Name is the name of its files in Dir: the log, the lock and the process id.
	Name string
	// Dir has an absolute path. Two running programs can't share one.
	Dir string
	// Prepare returns the command of one start. While it runs, no other program can use Dir. Ctx ends
	// before the server does, so the command must not depend on it.
	Prepare func(ctx context.Context) (*exec.Cmd, error)
	// Ready asks the started server. It returns nil if the server can do its work.
	Ready func(ctx context.Context) error
	// ReadyWithin bounds the time from the start of the process until it is ready.
	ReadyWithin time.Duration
	// Advice continues the error of a failed start. It may be empty.
	Advice string
	// Signals end the server. The first one asks it to stop in order, within Grace. It is also sent
	// when this program dies. The others are stronger, and SIGKILL is the last in any case.
	Signals []syscall.Signal
	Grace   time.Duration
	Report  Report
}

// Process is a server that was started. It ends with this program.
type Process struct {
	server  Server
	cmd     *exec.Cmd
	log     string
	done    chan struct{} // closed when it has ended, its claim is released and outcome is set
	outcome error
}

// Start starts the server and returns when it is ready. Ctx bounds only the start. The error quotes
// the end of the log.
func Start(ctx context.Context, s Server) (*Process, error) {
	began := time.Now()
	for {
		p, err := s.start(ctx)
		switch {
		case err == nil:
			return p, nil
		case ctx.Err() != nil:
			return nil, errors.Wrapf(ctx.Err(), "start %s", s.Name)
		case p == nil:
			return nil, errors.Wrapf(err, "start %s", s.Name)
		case time.Since(began) < s.ReadyWithin && slices.ContainsFunc(passing, p.logSays):
		default:
			return nil, errors.Wrapf(err, "start %s (end of %s follows%s)\n%s", s.Name, p.log, s.Advice, Tail(p.log))
		}
	}
}

// start tries once. On an error it also returns the process if there was one, because its log
// contains the cause.
func (s Server) start(ctx context.Context) (*Process, error) {
	claim, err := TakeClaim(ctx, s.Dir, s.Name, s.Signals[0], s.Report)
	if err != nil {
		return nil, err
	}
	p, err := s.launch(ctx, claim)
	if err != nil {
		claim.Release()
		return nil, err
	}
	if err := p.awaitReady(ctx); err != nil {
		_ = p.Stop(ctx) // the error of the start is more useful
		return p, err
	}
	return p, nil
}

// launch returns as soon as the process exists. The claim is released when the process has ended. On
// an error it is still held.
func (s Server) launch(ctx context.Context, claim *Claim) (*Process, error) {
	cmd, err := s.Prepare(ctx)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.Dir, s.Name+".log")
	log, err := NewLog(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	attributes := Attributes(s.Signals[0])
	if cmd.SysProcAttr != nil {
		attributes.Credential = cmd.SysProcAttr.Credential
	}
	cmd.SysProcAttr = attributes

	p := &Process{server: s, cmd: cmd, log: path, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(started, claim)
	if err := <-started; err != nil {
		return nil, errors.Wrapf(err, "start %s", cmd.Path)
	}
	return p, nil
}

// run starts the process and waits until it has ended. On Linux the death signal is sent when the
// starting thread ends, not the program. So this goroutine keeps its thread as long as the process
// lives.
func (p *Process) run(started chan<- error, claim *Claim) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	if err := claim.record(p.cmd.Process.Pid, p.cmd.Args); err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		started <- err
		return
	}
	started <- nil
	_ = p.cmd.Wait() // ProcessState has the result
	p.outcome = errors.Errorf("%s ended with %s", p.server.Name, p.cmd.ProcessState)
	claim.forget()
	claim.Release()
	close(p.done)
}

// ID returns the process id.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// Log returns the path of the server's log. The previous run's log is beside it with the suffix
// ".old".
func (p *Process) Log() string { return p.log }

// Done returns a channel that is closed when the server has ended for any reason.
func (p *Process) Done() <-chan struct{} { return p.done }

// Used returns the processor time of a server that has ended, including its children.
func (p *Process) Used() time.Duration {
	if p.cmd.ProcessState == nil {
		return 0 // the process could not be ended
	}
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// Stop asks the server to stop in order and waits for its end. After the grace period, or when ctx
// ends, it sends the stronger signals and returns an error. Stopping twice is allowed.
func (p *Process) Stop(ctx context.Context) error {
	_ = p.cmd.Process.Signal(p.server.Signals[0]) // fails only if the process has ended
	if p.await(ctx, p.server.Grace) {
		return nil
	}
	for _, signal := range slices.Concat(p.server.Signals[1:], []syscall.Signal{syscall.SIGKILL}) {
		_ = p.cmd.Process.Signal(signal)
		if p.await(context.WithoutCancel(ctx), killWait) {
			return errors.Errorf("%s did not stop in time when asked to and was ended by %s", p.server.Name, signal)
		}
	}
	return errors.Errorf("%s is still there after SIGKILL", p.server.Name)
}

// Kill ends the server like kill -9 and waits for it.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails only if the process has ended
	<-p.done
}

// await reports whether the process ended before ctx and before the limit.
func (p *Process) await(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-p.done:
	case <-ctx.Done():
	}
	return p.ended()
}

func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// awaitReady asks the server until it is ready. The error is that of the process if it ended.
func (p *Process) awaitReady(ctx context.Context) error {
	err := AwaitReady(ctx, p.server.ReadyWithin, p.done, p.server.Ready)
	if p.ended() {
		return p.outcome
	}
	return err
}

// AwaitReady calls ready until it returns nil. It gives up when ctx or the limit is over, or done is
// closed. The error has the last answer.
func AwaitReady(ctx context.Context, limit time.Duration, done <-chan struct{}, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errors.Errorf("not ready after %s", limit))
	defer cancel()
	go func() { // a question to a dead server must not hang
		select {
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	}()
	var answer error
	err := Poll(ctx, readyPause, func() (bool, error) {
		answer = ready(ctx)
		return answer == nil, nil
	})
	if err != nil {
		return errors.Wrapf(err, "last answer: %v", answer)
	}
	return nil
}

// Poll calls check until it is done or fails. When ctx ends, Poll returns its cause.
func Poll(ctx context.Context, interval time.Duration, check func() (done bool, err error)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if done, err := check(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// logSays reports whether the log of the current run contains the words, ignoring case.
func (p *Process) logSays(words string) bool {
	text, err := lastBytes(p.log, tailBytes)
	return err == nil && strings.Contains(strings.ToLower(text), words)
}
