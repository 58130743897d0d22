package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/oapi-codegen/nullable"

	earshot "earshot/client"
)

const (
	// What the healthy webhook gets a second, and for how long: the first retries are
	// due 30 s after a burst of 20 s.
	isolationRate   = 20
	isolationPeriod = time.Minute
	// Events of the burst a second, if 32 connections can make as many. More would use
	// up the processors of a small machine before anything is sent.
	burstRate        = 500
	burstConnections = 32
)

// neighbour is who gets the burst beside the healthy webhook.
type neighbour struct {
	name string
	// open starts its receiver, on loopback.
	open func() (url string, shut func(), err error)
	// foreign: it belongs to another organization.
	foreign bool
}

func neighbours() []neighbour {
	well := answering(func(http.ResponseWriter, *http.Request) {})
	return []neighbour{
		{"healthy as well", well, false},
		{"refuses connections", refusing, false},
		{"answers 500", answering(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }), false},
		{"hangs", answering(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), false},
		{"drips", answering(drip), false},
		{"another organization's", well, true},
	}
}

func answering(answer http.HandlerFunc) func() (string, func(), error) {
	return func() (string, func(), error) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// Only behind the body does the server see that the sender has gone.
			_, _ = io.Copy(io.Discard, r.Body)
			answer(w, r)
		}))
		return s.URL, func() { s.CloseClientConnections(); s.Close() }, nil
	}
}

// refusing is a port that nobody listens on.
func refusing() (string, func(), error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, errors.Wrap(err, "find a free port")
	}
	return "http://" + l.Addr().String(), func() {}, l.Close()
}

// drip answers byte by byte and never comes to an end.
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

// measureIsolation prints how long a post takes to arrive at a healthy webhook, alone
// and beside a burst of events at each neighbour.
func (s *stack) measureIsolation(ctx context.Context, o options) error {
	fmt.Printf("%d posts a second for %s, beside a burst of %d events\n", isolationRate, isolationPeriod, o.burst)
	fmt.Printf("%-28s %10s %10s %10s %12s\n", "the burst's receiver", "p50", "p99", "max", "p99 to alone")
	for range o.runs {
		alone, err := s.healthy(ctx)
		if err != nil {
			return err
		}
		printIsolation("none: alone", alone, alone)
		for _, n := range neighbours() {
			if !strings.Contains(n.name, o.only) {
				continue
			}
			beside, err := s.beside(ctx, n, o.burst)
			if err != nil {
				return errors.Wrap(err, n.name)
			}
			printIsolation(n.name, beside, alone)
		}
	}
	return nil
}

func printIsolation(name string, l, alone *latencies) {
	fmt.Printf("%-28s %10s %10s %10s %12.2f\n", name, brief(l.quantile(0.5)), brief(l.quantile(0.99)), brief(l.quantile(1)),
		float64(l.quantile(0.99))/float64(alone.quantile(0.99)))
}

// healthy measures the healthy webhook, with whatever is going on beside it.
func (s *stack) healthy(ctx context.Context) (*latencies, error) {
	_, err := s.delivered(ctx, int(isolationRate*isolationPeriod.Seconds()),
		func(ctx context.Context, do func(context.Context, int) error) error {
			return steady(ctx, isolationRate, isolationPeriod, do)
		})
	return s.receiver.times(), err
}

// beside measures it while the neighbour gets its burst.
func (s *stack) beside(ctx context.Context, n neighbour, events int) (*latencies, error) {
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
		s.others = append(s.others, owner.organization)
	}
	remove, err := owner.register(ctx, url, "contact.created")
	if err != nil {
		return nil, err
	}
	defer remove()
	ended := make(chan error, 1)
	go func() {
		began := time.Now()
		err := burst(ctx, events, burstConnections, func(ctx context.Context, i int) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Until(began.Add(time.Duration(i) * time.Second / burstRate))):
				return owner.contact(ctx)
			}
		})
		fmt.Fprintf(os.Stderr, "%s: the burst took %s\n", n.name, time.Since(began).Round(100*time.Millisecond))
		ended <- err
	}()
	times, err := s.healthy(ctx)
	if failed := <-ended; err == nil {
		err = failed
	}
	return times, err
}

// contact makes one that nobody knows.
func (t tenant) contact(ctx context.Context) error {
	answer, err := t.api.CreateContactWithResponse(ctx, earshot.CreateContactRequest{
		ExternalUserID: nullable.NewNullableWithValue(uuid.NewString()),
	})
	if err != nil {
		return errors.Wrap(err, "create a contact")
	}
	if answer.JSON201 == nil {
		return errors.Errorf("create a contact: %s: %s", answer.Status(), answer.Body)
	}
	return nil
}
