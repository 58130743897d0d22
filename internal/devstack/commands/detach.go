package commands

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/devstack/process"
	"earshot/internal/devstack/statedir"
)

// detachPause is the interval for polling a background process. It is short so that output appears
// smoothly; one poll costs microseconds.
const detachPause = 50 * time.Millisecond

// Started is a stack that runs in the background, as `up --detach --json` prints it.
type Started struct {
	Status        string `json:"status"` // started or already_running
	PID           int    `json:"pid"`
	Dir           string `json:"dir"`
	BaseURL       string `json:"baseUrl"`
	TemporalUIURL string `json:"temporalUiUrl"`
	EnvFile       string `json:"envFile"` // file with the API keys
	LogFile       string `json:"logFile"`
}

// UpDetached returns when the stack of the directory answers. It starts the stack in the background
// unless one runs already. Command is a detached `up` of the same directory.
func UpDetached(ctx context.Context, o Options, command *exec.Cmd) (s Started, err error) {
	d := o.Dir
	holder, err := findRunning(d)
	if err != nil {
		return s, err
	}
	if holder != nil && o.Demo {
		return s, errors.Errorf("this stack runs already (%s). Stop it with `%s`, then start it with --demo", holder, d.Command("down"))
	}
	status := "started"
	if holder == nil {
		holder, err = startDetached(ctx, d, o.Out, command)
	} else {
		status = "already_running"
		holder, err = awaitHolder(ctx, d, holder, o.Out)
	}
	if err != nil {
		return s, err
	}
	env, err := statedir.ReadEnv(d.DevEnv())
	if err != nil {
		return s, err
	}
	return Started{
		Status: status, PID: holder.PID, Dir: string(d), BaseURL: holder.BaseURL,
		TemporalUIURL: env[uiURLVariable], EnvFile: d.DevEnv(), LogFile: serviceLog(d),
	}, nil
}

// awaitHolder waits until a stack that runs already answers.
func awaitHolder(ctx context.Context, d statedir.Dir, holder *Running, said io.Writer) (*Running, error) {
	if holder.BaseURL == "" {
		fmt.Fprintf(said, "Process %d is starting this stack, or stopping it; waiting\n", holder.PID)
	}
	err := poll(ctx, func() (bool, error) {
		next, err := findRunning(d)
		if err == nil && next == nil {
			err = errors.Errorf("process %d has ended; start the stack again", holder.PID)
		}
		if err != nil {
			return false, err
		}
		holder = next
		return holder.BaseURL != "", nil
	})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(said, "This stack runs already: %s (process %d). %s\n", holder.BaseURL, holder.PID,
		"Keys and addresses stand in "+statedir.ShortPath(d.DevEnv()))
	return holder, nil
}

// startDetached starts the command in a new session and prints its output until the stack answers.
// It returns an error if the process ends first. It stops the process when ctx ends.
func startDetached(ctx context.Context, d statedir.Dir, said io.Writer, cmd *exec.Cmd) (*Running, error) {
	if err := d.Make(); err != nil {
		return nil, err
	}
	log, err := process.NewLog(upLog(d))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own handle
	cmd.Stdout, cmd.Stderr = log, log
	// A new session protects the process from Ctrl-C and from the end of the terminal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	shown, err := os.Open(upLog(d))
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

// follow prints the log until the stack answers or its process ends.
func follow(ctx context.Context, d statedir.Dir, log io.Reader, said io.Writer, ended <-chan struct{}) (holder *Running, err error) {
	err = poll(ctx, func() (bool, error) {
		over := false
		select {
		case <-ended:
			over = true
		default:
		}
		var err error
		if holder, err = findRunning(d); err != nil {
			return false, err
		}
		// Now the log contains all output from before the answer or the end of the process.
		if _, err := io.Copy(said, log); err != nil {
			return false, errors.Wrap(err, "show the start")
		}
		if over {
			return false, errors.Errorf("the stack did not start; its output is also in %s", statedir.ShortPath(upLog(d)))
		}
		return holder != nil && holder.BaseURL != "", nil
	})
	return holder, err
}

// poll calls check until it is done or fails. The error is errInterrupted when ctx is canceled, and
// the cause of ctx when its time is over.
func poll(ctx context.Context, check func() (done bool, err error)) error {
	err := process.Poll(ctx, detachPause, check)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return errInterrupted
	}
	return err
}
