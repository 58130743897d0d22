package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/go-faster/errors"
)

const (
	// readers read a page as often as this, each time with a connection of its own.
	readers   = 10_000
	readEvery = 20 * time.Second
	// readersTime is long enough that sixty answers are slower than the p99.
	readersTime = time.Minute
	// What the API is asked meanwhile, and what its p99 may be beside readers of pages, as a multiple
	// of its value alone.
	besideRate  = 100
	readersMost = 1.5
	// What a page may take of which nobody has asked in the last second.
	pagesRate = 50
	pageMost  = 20 * time.Millisecond
)

// measureReaders prints how long a page takes, and how long a list of the API alone and beside
// readers of public pages. It returns an error where one is slower than it may be.
func (s *stack) measureReaders(ctx context.Context, o options) (err error) {
	if _, err := s.once(ctx, o, subject{seeded: true, run: func(context.Context) (measured, error) { return measured{}, nil }}); err != nil {
		return err
	}
	p, hide, err := s.openPages(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hide()) }()
	paths, err := p.some(ctx, pagesRate+pagesRate/2) // by then none is kept any more
	if err != nil {
		return err
	}
	_, ask, err := s.seeded.sameEachTime(ctx, s.seeded.postsPath(""))
	if err != nil {
		return err
	}
	var page, alone, besideText, beside []time.Duration
	for range o.runs {
		for _, one := range []struct {
			name string
			p99s *[]time.Duration
			take func() (*latencies, error)
		}{
			{fmt.Sprintf("%d pages a second, each another one", pagesRate), &page, func() (*latencies, error) { return everyPeriod(ctx, pagesRate, p.reading(paths)) }},
			{fmt.Sprintf("%d lists of the API a second, alone", besideRate), &alone, func() (*latencies, error) { return everyPeriod(ctx, besideRate, ask) }},
			{fmt.Sprintf("… beside %d who ask for a line of text", readers), &besideText, func() (*latencies, error) {
				return besideReaders(ctx, coming{p.base, []string{"/robots.txt"}}, ask)
			}},
			{fmt.Sprintf("… beside %d readers of pages", readers), &beside, func() (*latencies, error) { return besideReaders(ctx, coming{p.base, paths}, ask) }},
		} {
			times, err := one.take()
			if err != nil {
				return err
			}
			*one.p99s = append(*one.p99s, printReaders(one.name, times))
		}
	}
	times := func(p99s []time.Duration) float64 { return float64(medianTime(p99s)) / float64(medianTime(alone)) }
	fmt.Printf("the API's p99: alone %s, beside who ask for a line of text %.2f times that, beside readers of pages %.2f times\n",
		brief(medianTime(alone)), times(besideText), times(beside))
	return tooSlow(medianTime(page), medianTime(alone), medianTime(beside))
}

// tooSlow is an error where one of the p99s is more than it may be. They are medians of the runs, because
// a p99 is made of few answers and swings by half from run to run.
func tooSlow(page, alone, beside time.Duration) error {
	var beyond []error
	if page > pageMost {
		beyond = append(beyond, errors.Errorf("a page's p99 is more than %s", pageMost))
	}
	if float64(beside) > readersMost*float64(alone) {
		beyond = append(beyond, errors.Errorf("beside readers the API's p99 is more than %.1f times what it is alone", readersMost))
	}
	return errors.Join(beyond...)
}

func medianTime(of []time.Duration) time.Duration { return slices.Sorted(slices.Values(of))[len(of)/2] }

func everyPeriod(ctx context.Context, rate int, do operation) (*latencies, error) {
	return openLoop(ctx, rate, readersTime, func(ctx context.Context, i int, _ time.Time) error { return do(ctx, i) })
}

func printReaders(name string, l *latencies) (p99 time.Duration) {
	p99 = l.quantile(0.99)
	fmt.Printf("%-44s p50 %9s  p99 %9s  max %9s\n", name, brief(l.quantile(0.5)), brief(p99), brief(l.quantile(1)))
	return p99
}

// besideReaders asks the API while readers come, each to one of the pages.
func besideReaders(ctx context.Context, come coming, ask operation) (*latencies, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- come.elsewhere(ctx) }()
	times, err := everyPeriod(ctx, besideRate, ask)
	if err != nil {
		cancel()
	}
	return times, errors.Join(err, <-ended)
}

// readersProcess is the first argument of the process that the readers are in. Their browsers are on
// other machines in life, so what they take of the processors isn't what the API may notice of them: in
// a process of their own, which runs when nothing else wants to, they cost what a network would bring.
const readersProcess = "readers"

// coming are readers, each with a connection of its own to one of the paths.
type coming struct {
	Base  string   `json:"base"`
	Paths []string `json:"paths"`
}

// elsewhere has them come, from another process.
func (c coming) elsewhere(ctx context.Context) error {
	asked, err := json.Marshal(c)
	if err != nil {
		return errors.Wrap(err, "write where the readers go")
	}
	program, err := os.Executable()
	if err != nil {
		return errors.Wrap(err, "find this program")
	}
	process := exec.CommandContext(ctx, program, readersProcess) //nolint:gosec // this program
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}     // see beLast
	process.Stdin, process.Stdout, process.Stderr = bytes.NewReader(asked), os.Stdout, os.Stderr
	if err := process.Run(); err != nil {
		return errors.Wrap(err, "have readers come")
	}
	return nil
}

// beReaders is what the readers' process does: it has those come that it is told of, and prints how
// long they waited.
func beReaders(ctx context.Context, told io.Reader) error {
	if err := beLast(); err != nil {
		return errors.Wrap(err, "be the last to run")
	}
	var c coming
	if err := json.NewDecoder(told).Decode(&c); err != nil {
		return errors.Wrap(err, "read where the readers go")
	}
	times, err := everyPeriod(ctx, readers/int(readEvery.Seconds()), func(ctx context.Context, _ int) error {
		own := pages{http: newHTTPClient(), base: c.Base}
		defer own.http.CloseIdleConnections()
		// Any of them, as readers do: in turn, all would become old one behind the other.
		path := c.Paths[rand.IntN(len(c.Paths))] //nolint:gosec // who reads what is no secret
		return own.readTo(ctx, path, io.Discard)
	})
	if err != nil {
		return err
	}
	printReaders("… what the readers wait", times)
	return nil
}

// beLast gives this process the least of all priorities: among the processes of its session, and its
// session among those that the kernel shares the processors out to, where it does (sched(7), autogroup).
func beLast() error {
	const least = 19
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, least); err != nil {
		return err
	}
	err := os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(least)), 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a kernel that doesn't
	}
	return err
}
