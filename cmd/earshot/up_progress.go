package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
)

// progress tells a person what happens: one line for each step when it is done,
// with its time, and lines about what goes on within a long one. On a terminal
// the step that runs is shown, too.
type progress struct {
	out      io.Writer
	terminal bool

	mu      sync.Mutex // reports come from several goroutines
	current string     // the step that the terminal's last line shows
}

func newProgress(out io.Writer) *progress {
	file, ok := out.(*os.File)
	return &progress{out: out, terminal: ok && isatty.IsTerminal(file.Fd())}
}

// nameWidth fits the longest name of a step.
const nameWidth = 18

// step runs one and shows how it ended.
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

// report prints a line about what goes on within a step.
func (p *progress) report(format string, args ...any) {
	p.say("    %-*s "+format, append([]any{nameWidth, ""}, args...)...)
}

// show makes name the step that the terminal shows; "" is none.
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

// inSeconds is a duration with as many digits as a person cares for.
func inSeconds(d time.Duration) string {
	if d >= 10*time.Second {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}
