package commands

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
)

// progress prints one line for each finished step, with its duration, and lines about the progress
// of a long step. On a terminal it also shows the running step.
type progress struct {
	out      io.Writer
	terminal bool

	mu      sync.Mutex // reports come from several goroutines
	current string     // step in the terminal's last line
}

func newProgress(out io.Writer) *progress {
	file, ok := out.(*os.File)
	return &progress{out: out, terminal: ok && isatty.IsTerminal(file.Fd())}
}

// nameWidth fits the longest name of a step.
const nameWidth = 18

// step runs a step and prints its result.
func (p *progress) step(name string, run func() (outcome string, err error)) error {
	p.show(name)
	began := time.Now()
	outcome, err := run()
	took := inSeconds(time.Since(began))
	p.show("")
	if err != nil {
		p.say("  ✗ %-*s after %s", nameWidth, name, took)
		return err
	}
	p.say("  ✓ %-*s %s (%s)", nameWidth, name, outcome, took)
	return nil
}

// say prints one line.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintf(p.out, format+"\n", args...)
	p.draw()
}

// report prints a line about the progress of a step.
func (p *progress) report(format string, args ...any) {
	p.say("    %-*s "+format, append([]any{nameWidth, ""}, args...)...)
}

// show displays the name of the running step on the terminal. An empty name displays none.
func (p *progress) show(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.current = name
	p.draw()
}

func (p *progress) clear() {
	if p.terminal && p.current != "" {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

func (p *progress) draw() {
	if p.terminal && p.current != "" {
		fmt.Fprintf(p.out, "  … %s", p.current)
	}
}

// inSeconds formats a duration with a readable number of digits.
func inSeconds(d time.Duration) string {
	if d >= 10*time.Second {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}
