package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"
)

const (
	// The healthy webhook's events a second, and the time for which they continue after the burst.
	// The last events of the burst are retried 30 s later.
	isolationRate   = 20
	isolationAfter  = 40 * time.Second
	isolationWarmUp = 10 * time.Second
	// The limit for a healthy webhook's p99 beside a receiver that doesn't keep up, as a multiple
	// of its p99 alone.
	isolationMost = 2

	burstConnections = 32
)

// neighbour receives the burst beside the healthy webhook.
type neighbour struct {
	name string
	// open starts the receiver on loopback.
	open func() (url string, shut func(), err error)
	// keepsUp marks a receiver that answers promptly. The load alone causes the cost of its burst,
	// so the limit for the p99 doesn't apply.
	keepsUp bool
	// foreign puts the webhook into another organization.
	foreign bool
}

func neighbours() []neighbour {
	well := answering(func(http.ResponseWriter, *http.Request) {})
	return []neighbour{
		{name: "healthy as well", open: well, keepsUp: true},
		{name: "refuses connections", open: refusing},
		{name: "answers 500", open: answering(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })},
		{name: "hangs", open: answering(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })},
		{name: "drips", open: answering(drip)},
		{name: "another organization's", open: well, keepsUp: true, foreign: true},
	}
}

func answering(answer http.HandlerFunc) func() (string, func(), error) {
	return func() (string, func(), error) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// The server notices that the sender has disconnected only after it has read the body.
			_, _ = io.Copy(io.Discard, r.Body)
			answer(w, r)
		}))
		return s.URL, func() { s.CloseClientConnections(); s.Close() }, nil
	}
}

// refusing returns the URL of a port without a listener.
func refusing() (string, func(), error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, errors.Wrap(err, "find a free port")
	}
	return "http://" + l.Addr().String(), func() {}, l.Close()
}

// drip sends one byte at a time and never ends its answer.
func drip(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		_, _ = w.Write([]byte("."))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// measureIsolation prints how long a post takes to arrive at a healthy webhook, alone and beside a
// burst of events to each neighbour. It returns an error if a receiver that doesn't keep up slows
// the healthy webhook down by more than isolationMost.
func (s *stack) measureIsolation(ctx context.Context, o options) error {
	period := time.Duration(o.burst)*time.Second/time.Duration(o.burstRate) + isolationAfter
	fmt.Printf("%d posts a second for %s, beside a burst of %d events, %d a second\n", isolationRate, period, o.burst, o.burstRate)
	fmt.Printf("%-28s %10s %10s %10s %12s\n", "the burst's receiver", "p50", "p99", "max", "p99 to alone")
	// The warm-up excludes the first-time work of a service that has just started.
	if _, err := s.healthy(ctx, isolationWarmUp); err != nil {
		return err
	}
	var beyond []string
	for range o.runs {
		alone, err := s.healthy(ctx, period)
		if err != nil {
			return err
		}
		printIsolation("none: alone", alone, alone)
		for _, n := range neighbours() {
			if !slices.ContainsFunc(strings.Split(o.only, ","), func(part string) bool { return strings.Contains(n.name, part) }) {
				continue
			}
			beside, err := s.beside(ctx, n, o.burst, o.burstRate, period)
			if err != nil {
				return errors.Wrap(err, n.name)
			}
			if printIsolation(n.name, beside, alone) > isolationMost && !n.keepsUp {
				beyond = append(beyond, n.name)
			}
		}
	}
	if len(beyond) > 0 {
		return errors.Errorf("a healthy webhook's p99 is more than %d times its value alone beside a receiver that %s",
			isolationMost, strings.Join(beyond, ", "))
	}
	return nil
}

func printIsolation(name string, l, alone *latencies) (ratio float64) {
	ratio = float64(l.quantile(0.99)) / float64(alone.quantile(0.99))
	fmt.Printf("%-28s %10s %10s %10s %12.2f\n", name, brief(l.quantile(0.5)), brief(l.quantile(0.99)), brief(l.quantile(1)), ratio)
	return ratio
}

// healthy measures the latencies of the healthy webhook.
func (s *stack) healthy(ctx context.Context, period time.Duration) (*latencies, error) {
	_, err := s.deliveredAt(ctx, isolationRate, period)
	return s.receiver.times(), err
}

// beside measures the healthy webhook during the neighbour's burst.
func (s *stack) beside(ctx context.Context, n neighbour, events, rate int, period time.Duration) (*latencies, error) {
	url, shut, err := n.open()
	if err != nil {
		return nil, err
	}
	defer shut()
	owner := s.tenant
	if n.foreign {
		if owner, err = s.makeTenant(ctx); err != nil {
			return nil, err
		}
	}
	_, remove, err := owner.register(ctx, url, "contact.created")
	if err != nil {
		return nil, err
	}
	defer remove()
	ended := make(chan error, 1)
	go func() {
		began := time.Now()
		_, err := burst(ctx, events, burstConnections, func(ctx context.Context, i int) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate)))):
				return owner.contact(ctx)
			}
		})
		fmt.Fprintf(os.Stderr, "%s: the burst took %s\n", n.name, time.Since(began).Round(100*time.Millisecond))
		ended <- err
	}()
	times, err := s.healthy(ctx, period)
	if failed := <-ended; err == nil {
		err = failed
	}
	return times, err
}
