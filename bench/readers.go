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
	// The number of readers. Each reads a page once in every readEvery, over a new connection.
	readers   = 10_000
	readEvery = 20 * time.Second
	// readersTime is long enough for sixty answers above the p99.
	readersTime = time.Minute
	// The API requests a second during the measurement, and the limit for their p99 beside readers
	// of pages, as a multiple of their p99 alone.
	besideRate  = 100
	readersMost = 1.5
	// The rate of page requests, and the limit for the p99 of a page without a request in the last
	// second.
	pagesRate = 50
	pageMost  = 20 * time.Millisecond
)

// measureReaders prints the latency of a page, and the latency of an API list alone and beside
// readers of public pages. It returns an error if one of them is slower than its limit.
func (s *stack) measureReaders(ctx context.Context, o options) (err error) {
	if _, err := s.once(ctx, o, subject{seeded: true, run: func(context.Context) (measured, error) { return measured{}, nil }}); err != nil {
		return err
	}
	p, hide, err := s.openPages(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hide()) }()
	paths, err := p.some(ctx, pagesRate+pagesRate/2) // by its next read, a page has left the cache
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
			{fmt.Sprintf("… beside %d readers of a line of text", readers), &besideText, func() (*latencies, error) {
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
	fmt.Printf("the API's p99: alone %s, beside readers of a line of text %.2f times that, beside readers of pages %.2f times\n",
		brief(medianTime(alone)), times(besideText), times(beside))
	return tooSlow(medianTime(page), medianTime(alone), medianTime(beside))
}

// tooSlow returns an error if one of the p99s exceeds its limit. The arguments are medians of the
// runs, because a p99 depends on few answers and varies by half from run to run.
func tooSlow(page, alone, beside time.Duration) error {
	var beyond []error
	if page > pageMost {
		beyond = append(beyond, errors.Errorf("a page's p99 is more than %s", pageMost))
	}
	if float64(beside) > readersMost*float64(alone) {
		beyond = append(beyond, errors.Errorf("the API's p99 beside readers is more than %.1f times its p99 alone", readersMost))
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

// besideReaders sends requests to the API while readers read random pages.
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

// readersProcess is the first argument of the process that simulates the readers. Real browsers run
// on other machines, so their processor time must not slow the API down. Therefore the readers run
// in a separate process with the lowest priority.
const readersProcess = "readers"

// coming describes readers. Each reads one of the paths over a new connection.
type coming struct {
	Base  string   `json:"base"`
	Paths []string `json:"paths"`
}

// elsewhere simulates the readers in another process.
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

// beReaders is the body of the readers' process. It simulates the readers that it is told about on
// its input, and prints their latencies.
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
		// Readers pick a random page. If they took turns, the pages would expire from the cache one
		// after the other.
		path := c.Paths[rand.IntN(len(c.Paths))] //nolint:gosec // who reads what is no secret
		return own.readTo(ctx, path, io.Discard)
	})
	if err != nil {
		return err
	}
	printReaders("… the latency of the readers", times)
	return nil
}

// beLast gives this process the lowest priority within its session. It also gives the session the
// lowest priority if the kernel schedules by session (sched(7), autogroup).
func beLast() error {
	const least = 19
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, least); err != nil {
		return err
	}
	err := os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(least)), 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the kernel has no autogroups
	}
	return err
}
