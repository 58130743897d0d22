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
	// lookEvery lies between two looks at a condition.
	lookEvery = 20 * time.Millisecond
	// waitTimeout bounds whatever has to happen, on a busy machine too. The longest thing is
	// an activity without heartbeats that a kill cut off: 2 min.
	waitTimeout = 4 * time.Minute
	// respawnPause is what a service manager waits before it starts again what ended.
	respawnPause = 100 * time.Millisecond
)

// service is a process of the program with whoever starts it again when it ends, as
// a service manager does.
type service struct {
	name string
	path string
	args []string
	env  []string
	log  string
	// listen is the address of an API.
	listen string
	// ready reports whether the process that runs now does its work. The log is what
	// it said since it was started.
	ready func(log string) bool

	// connected is held by who cuts a link of the process, or starts it anew.
	connected sync.Mutex

	mu      sync.Mutex
	process *os.Process
	from    int64 // where the log of the process begins
	// began and died are of each process so far, in their order.
	began, died []time.Time
	// states are how they ended.
	states []*os.ProcessState
	// points are what the next processes are armed with, one each.
	points []failpoint.Point
	held   bool
	quit   bool
	ended  chan struct{}
	// byItself counts ends that nobody asked for.
	byItself int
	asked    bool
	// stopping: it was asked to end in order.
	stopping bool
}

func (s *service) url() string { return "http://" + s.listen }

// run keeps the process running until stop.
func (s *service) run() {
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		// The death signal of Linux comes when the thread ends that started the process.
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

// killed reports whether a process ended by SIGKILL, as at a failpoint, and not by itself.
func killed(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// kill ends the process as kill -9 does, and returns the moment. Another one follows at
// once; it and those after it are armed with the points, one each.
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

// restart asks the process to end, as a service manager does for a new version, and waits
// until the next one is ready. One that doesn't end in order is an error.
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

// hold says whether no further process follows one that ends.
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

// started is when a process was started, by its number from 1.
func (s *service) started(generation int) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began[generation-1]
}

// ends is when a process ended, by its number.
func (s *service) ends(generation int) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.died[generation-1]
}

// unasked is how often a process ended that nobody killed.
func (s *service) unasked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byItself
}

// awaitReady waits until a process after that generation does its work.
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

// firstWords is the beginning of a process's log, which says how it came up.
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

// awaitStart waits until a process was started, by its number.
func (s *service) awaitStart(ctx context.Context, generation int) error {
	return await(ctx, s.name+" to be started", func() bool { return s.generation() >= generation })
}

// awaitDeath waits until a process has come to its failpoint, by its number. One that
// ended otherwise is an error.
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

// forgetPeak begins anew to watch how much memory the process takes, and returns what it
// takes now, in bytes.
func (s *service) forgetPeak() (now int64, err error) {
	pid := s.pid()
	if err := forgetPeak(pid); err != nil {
		return 0, err
	}
	now, _, err = memory(pid)
	return now, err
}

// peak is the most that it took since.
func (s *service) peak() (int64, error) {
	_, peak, err := memory(s.pid())
	return peak, err
}

// pid is that of the process that runs now, 0 if there is none.
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

// await looks until the condition holds, and says what it waited for when it doesn't.
func await(ctx context.Context, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, errors.Errorf("waited %s for %s in vain", waitTimeout, what))
	defer cancel()
	tick := time.NewTicker(lookEvery)
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

// says reports whether a worker has come up.
func says(log string) bool { return strings.Contains(log, `"worker runs"`) }
