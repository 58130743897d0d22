package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/go-faster/errors"
)

const (
	// detachedFlag marks the process that --detach starts.
	detachedFlag = "detached"
	demoFlag     = "demo"
	// detachPause is the interval for polling a background process. It is short so that output
	// appears smoothly; one poll costs microseconds.
	detachPause = 50 * time.Millisecond
)

// upResult is the output of `up --detach --json`.
type upResult struct {
	Status        string `json:"status"` // started or already_running
	PID           int    `json:"pid"`
	Dir           string `json:"dir"`
	BaseURL       string `json:"baseUrl"`
	TemporalUIURL string `json:"temporalUiUrl"`
	EnvFile       string `json:"envFile"` // file with the API keys
	LogFile       string `json:"logFile"`
}

// upDetached returns when the stack of the directory answers. It starts the stack in the background
// unless one runs already.
func upDetached(ctx context.Context, d stateDir, out, errOut io.Writer, asJSON, withDemo bool) error {
	said := out
	if asJSON {
		said = errOut
	}
	holder, err := findRunning(d)
	if err != nil {
		return err
	}
	if holder != nil && withDemo {
		return errors.Errorf("this stack runs already (%s). Stop it with `%s`, then start it with --%s", holder, d.command("down"), demoFlag)
	}
	status := "already_running"
	if holder == nil {
		status = "started"
		holder, err = startDetached(ctx, d, said, withDemo)
	} else {
		holder, err = awaitHolder(ctx, d, holder, said)
	}
	if err != nil {
		return err
	}
	if !asJSON {
		return nil
	}
	env, err := readEnvFile(d.devEnv())
	if err != nil {
		return err
	}
	return printJSON(out, upResult{
		Status: status, PID: holder.pid, Dir: string(d), BaseURL: holder.baseURL,
		TemporalUIURL: env["TEMPORAL_UI_URL"], EnvFile: d.devEnv(), LogFile: d.serviceLog(),
	})
}

// awaitHolder waits until a stack that runs already answers.
func awaitHolder(ctx context.Context, d stateDir, holder *running, said io.Writer) (*running, error) {
	if holder.baseURL == "" {
		fmt.Fprintf(said, "Process %d is starting this stack, or stopping it; waiting\n", holder.pid)
	}
	for holder.baseURL == "" {
		if err := pause(ctx); err != nil {
			return nil, err
		}
		next, err := findRunning(d)
		if err != nil {
			return nil, err
		}
		if next == nil {
			return nil, errors.Errorf("process %d has ended; start the stack again", holder.pid)
		}
		holder = next
	}
	fmt.Fprintf(said, "This stack runs already: %s (process %d). %s\n", holder.baseURL, holder.pid,
		"Keys and addresses stand in "+shortPath(d.devEnv()))
	return holder, nil
}

// startDetached starts this program again in a new session and prints its output until the stack
// answers. It returns an error if the process ends first. It stops the process when ctx ends.
func startDetached(ctx context.Context, d stateDir, said io.Writer, withDemo bool) (*running, error) {
	if err := os.MkdirAll(string(d), 0o711); err != nil { // same mode as in up
		return nil, errors.Wrap(err, "make the state directory")
	}
	log, err := newServiceLog(d.upLog())
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own handle
	cmd, err := detachedCommand(d, log, withDemo)
	if err != nil {
		return nil, err
	}
	shown, err := os.Open(d.upLog())
	if err != nil {
		return nil, errors.Wrap(err, "follow the start")
	}
	defer func() { _ = shown.Close() }()
	if err := cmd.Start(); err != nil {
		return nil, errors.Wrap(err, "start in the background")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its output has the reason
	}()
	holder, err := follow(ctx, d, shown, said, ended)
	if err != nil {
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails only if the process has ended
		<-ended
		_, _ = io.Copy(said, shown)
	}
	if errors.Is(err, errInterrupted) {
		return nil, errors.New("interrupted; the stack is stopped")
	}
	return holder, err
}

func detachedCommand(d stateDir, log *os.File, withDemo bool) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, errors.Wrap(err, "find this program")
	}
	cmd := exec.Command(self, "up", "--dir", string(d), "--"+detachedFlag)
	if withDemo {
		cmd.Args = append(cmd.Args, "--"+demoFlag)
	}
	cmd.Stdout, cmd.Stderr = log, log
	// A new session protects the process from Ctrl-C and from the end of the terminal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

// follow prints the log until the stack answers or its process ends.
func follow(ctx context.Context, d stateDir, log io.Reader, said io.Writer, ended <-chan struct{}) (*running, error) {
	for {
		over := false
		select {
		case <-ended:
			over = true
		default:
		}
		holder, err := findRunning(d)
		if err != nil {
			return nil, err
		}
		// Now the log contains all output from before the answer or the end of the process.
		if _, err := io.Copy(said, log); err != nil {
			return nil, errors.Wrap(err, "show the start")
		}
		switch {
		case over:
			return nil, errors.Errorf("the stack did not start; its output is also in %s", shortPath(d.upLog()))
		case holder != nil && holder.baseURL != "":
			return holder, nil
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

func pause(ctx context.Context) error {
	timer := time.NewTimer(detachPause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return errInterrupted
	case <-timer.C:
		return nil
	}
}
