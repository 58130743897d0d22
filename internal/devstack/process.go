package devstack

import (
	"context"
	"os/exec"
	"runtime"
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

// child is a running server. Done is closed when it has ended, its claim is released and outcome is
// set.
type child struct {
	cmd     *exec.Cmd
	name    string
	log     string
	done    chan struct{}
	outcome error
}

// spec describes the start of a child.
type spec struct {
	name string         // "postgres", for messages
	path string         // the binary
	dir  string         // where it runs; "": where the caller does
	args []string       // without the binary
	env  []string       // the whole environment
	log  string         // file for its output
	user *account       // nil: as the caller
	stop syscall.Signal // asks it to stop in order; also sent when this process dies
}

// startChild starts the server and returns as soon as its process exists. The claim is released
// when the process has ended. On an error it is still held.
func startChild(s spec, c *claim) (*child, error) {
	log, err := newLog(s.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(s.path, s.args...)
	cmd.Dir = s.dir
	cmd.Env = s.env
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes(s.stop)
	cmd.SysProcAttr.Credential = s.user.credential()

	p := &child{cmd: cmd, name: s.name, log: s.log, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(started, c)
	if err := <-started; err != nil {
		return nil, errors.Wrapf(err, "start %s", s.path)
	}
	return p, nil
}

// run starts the process and waits until it has ended. On Linux the death signal is sent when the
// starting thread ends, not the program. So this goroutine keeps its thread as long as the process
// lives.
func (p *child) run(started chan<- error, c *claim) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	if err := c.record(p.cmd.Process.Pid, p.cmd.Args); err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		started <- err
		return
	}
	started <- nil
	_ = p.cmd.Wait() // ProcessState has the result
	p.outcome = errors.Errorf("%s ended with %s", p.name, p.cmd.ProcessState)
	c.forget()
	c.release()
	close(p.done)
}

// stop sends the first signal and waits for the process to end. After the grace period, or when ctx
// ends, it sends the stronger signals and finally SIGKILL, which returns an error. If the process
// has ended already, stop returns nil.
func (p *child) stop(ctx context.Context, grace time.Duration, first syscall.Signal, harder ...syscall.Signal) error {
	_ = p.cmd.Process.Signal(first) // fails only if the process has ended
	if p.await(ctx, grace) {
		return nil
	}
	for _, signal := range append(harder, syscall.SIGKILL) {
		_ = p.cmd.Process.Signal(signal)
		if p.await(context.WithoutCancel(ctx), killWait) {
			return errors.Errorf("%s did not stop in time when asked to and was ended by %s", p.name, signal)
		}
	}
	return errors.Errorf("%s is still there after SIGKILL", p.name)
}

// used returns the processor time of a process that has ended, including its children.
func (p *child) used() time.Duration {
	if p.cmd.ProcessState == nil {
		return 0 // the process could not be ended
	}
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// kill kills the process and waits for its end.
func (p *child) kill() {
	_ = p.cmd.Process.Kill() // fails only if the process has ended
	<-p.done
}

// await reports whether the process ended before ctx and before the limit.
func (p *child) await(ctx context.Context, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// awaitReady repeats probe until it returns nil. The error is that of the process if it ended, or
// of the last probe when ctx or the limit is over.
func (p *child) awaitReady(ctx context.Context, limit time.Duration, probe func(context.Context) error) error {
	tooLate := errors.Errorf("%s is not ready after %s", p.name, limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, tooLate)
	defer cancel()
	go func() { // a probe of a dead server must not hang
		select {
		case <-p.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	tick := time.NewTicker(readyPause)
	defer tick.Stop()
	for {
		answer := probe(ctx)
		select {
		case <-p.done:
			return p.outcome
		default:
		}
		if answer == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.outcome
		case <-ctx.Done():
			return errors.Wrapf(context.Cause(ctx), "last answer: %v", answer)
		case <-tick.C:
		}
	}
}

// logSays reports whether the log of the current run contains one of the words, ignoring case.
func (p *child) logSays(words ...string) bool {
	text, err := lastBytes(p.log, tailBytes)
	if err != nil {
		return false
	}
	text = strings.ToLower(text)
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
