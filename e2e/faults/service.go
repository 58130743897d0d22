package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/failpoint"
)

const (
	// pollInterval is the interval between checks of a condition.
	pollInterval = 20 * time.Millisecond
	// waitTimeout bounds every wait, on a busy machine too. The longest wait is 2 min, for an
	// activity without heartbeats that a kill interrupted.
	waitTimeout = 4 * time.Minute
	// respawnPause is the pause before a process is started again, as by a service manager.
	respawnPause = 100 * time.Millisecond
)

// service is a process of the program, together with a service manager that restarts it.
type service struct {
	name string
	path string
	args []string
	env  []string
	log  string
	// listen is the address of an API.
	listen string
	// ready reports whether the running process does its work. The log begins with its start.
	ready func(log string) bool

	// connected is locked while a link of the process is cut and while the process is restarted.
	connected sync.Mutex

	mu      sync.Mutex
	process *os.Process
	from    int64 // where the log of the process begins
	// began and died are the start and end times of each process so far, in order.
	began, died []time.Time
	// states are the exit states of those processes.
	states []*os.ProcessState
	// points are the failpoints of the next processes, one for each.
	points []failpoint.Point
	held   bool
	quit   bool
	ended  chan struct{}
	// byItself counts unexpected exits.
	byItself int
	asked    bool
	// stopping: the process was sent SIGTERM.
	stopping bool
}

func (s *service) url() string { return "http://" + s.listen }

// run keeps the process running until stop.
func (s *service) run() {
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		// Linux sends the death signal when the thread that started the process ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for {
			s.mu.Lock()
			quit, held := s.quit, s.held
			s.mu.Unlock()
			if quit {
				return
			}
			if !held {
				s.runOnce()
			}
			time.Sleep(respawnPause)
		}
	}()
}

func (s *service) runOnce() {
	file, err := os.OpenFile(s.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return
	}
	s.mu.Lock()
	cmd := exec.Command(s.path, s.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = s.env, file, file, attributes()
	armed := len(s.points) > 0
	if armed {
		cmd.Env = append(append([]string{}, s.env...), failpoint.Variable+"="+string(s.points[0])+"=1")
		s.points = s.points[1:]
	}
	if s.quit || cmd.Start() != nil {
		s.mu.Unlock()
		return
	}
	s.process, s.from, s.asked, s.stopping = cmd.Process, info.Size(), armed, false
	s.began = append(s.began, time.Now())
	s.mu.Unlock()
	_ = cmd.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = nil
	s.died = append(s.died, time.Now())
	s.states = append(s.states, cmd.ProcessState)
	inOrder := s.stopping && cmd.ProcessState.Success()
	if !s.quit && !inOrder && (!s.asked || !killed(cmd.ProcessState)) {
		s.byItself++
	}
}

// killed reports whether a process ended by SIGKILL, for example at a failpoint.
func killed(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// kill ends the process as kill -9 does, and returns the time. A new process follows immediately.
// That one and its successors are armed with one point each.
func (s *service) kill(points ...failpoint.Point) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.points, s.asked = points, true
	at := time.Now()
	if s.process != nil {
		_ = s.process.Kill()
	}
	return at
}

// restart sends SIGTERM to the process, as a service manager does for a new version, and waits
// until the next one is ready. It returns an error unless the process exits with 0.
func (s *service) restart(ctx context.Context) error {
	before := s.generation()
	s.mu.Lock()
	s.stopping = true
	err := errors.New("it doesn't run")
	if s.process != nil {
		err = s.process.Signal(syscall.SIGTERM)
	}
	s.mu.Unlock()
	if err != nil {
		return errors.Wrapf(err, "stop %s", s.name)
	}
	if err := s.awaitReady(ctx, before); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.states[before-1]; !state.Success() {
		return errors.Errorf("%s was asked to end in order and ended with %s", s.name, state)
	}
	return nil
}

// hold stops further restarts, or allows them again.
func (s *service) hold(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
}

// generation counts the processes so far.
func (s *service) generation() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.began)
}

// started returns the start time of a process, by its number from 1.
func (s *service) started(generation int) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began[generation-1]
}

// ends returns the end time of a process, by its number.
func (s *service) ends(generation int) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.died[generation-1]
}

// unasked returns the number of unexpected exits.
func (s *service) unasked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byItself
}

// awaitReady waits until a process after that generation is ready.
func (s *service) awaitReady(ctx context.Context, after int) error {
	return await(ctx, s.name+" to be ready", func() bool {
		s.mu.Lock()
		runs, from := s.process != nil && len(s.began) > after, s.from
		s.mu.Unlock()
		if !runs {
			return false
		}
		return s.ready(firstWords(s.log, from))
	})
}

// firstWords returns the beginning of a process's log, which covers its start.
func firstWords(path string, from int64) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	buffer := make([]byte, 256<<10) // some hundred lines
	n, _ := file.ReadAt(buffer, from)
	return string(buffer[:n])
}

// awaitStart waits until the process with that number has started.
func (s *service) awaitStart(ctx context.Context, generation int) error {
	return await(ctx, s.name+" to be started", func() bool { return s.generation() >= generation })
}

// awaitDeath waits until the process with that number has been killed at its failpoint. Any other
// end is an error.
func (s *service) awaitDeath(ctx context.Context, generation int, at failpoint.Point) error {
	err := await(ctx, s.name+" to come to "+string(at), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.died) >= generation
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.states[generation-1]; !killed(state) {
		return errors.Errorf("%s ended before it came to %s: %s", s.name, at, state)
	}
	return nil
}

// forgetPeak resets the peak of the process's memory and returns the present memory, in bytes.
func (s *service) forgetPeak() (now int64, err error) {
	pid := s.pid()
	if err := forgetPeak(pid); err != nil {
		return 0, err
	}
	now, _, err = memory(pid)
	return now, err
}

// peak returns the peak memory since forgetPeak.
func (s *service) peak() (int64, error) {
	_, peak, err := memory(s.pid())
	return peak, err
}

// pid is the id of the running process, or 0.
func (s *service) pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.Pid
}

// stop ends the process for good.
func (s *service) stop() {
	s.mu.Lock()
	s.quit = true
	if s.process != nil {
		_ = s.process.Signal(syscall.SIGKILL)
	}
	s.mu.Unlock()
	<-s.ended
}

// await polls until the condition holds. Its error names the condition.
func await(ctx context.Context, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, errors.Errorf("waited %s for %s in vain", waitTimeout, what))
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			return errors.Wrap(context.Cause(ctx), what)
		case <-tick.C:
		}
	}
	return nil
}

// says reports whether the log shows a running worker.
func says(log string) bool { return strings.Contains(log, `"worker runs"`) }
