package send

import (
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/webhook"
)

func TestAttemptsTowardOneReceiverShareAConnection(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"with a body":       response("200 OK", "fine"),
		"without a body":    "HTTP/1.1 204 No Content\r\n\r\n",
		"with chunks":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\n\r\n",
		"with a failure":    response("500 No", "no"),
		"with 40 KiB":       response("200 OK", string(make([]byte, 40<<10))),
		"after Early Hints": "HTTP/1.1 103 Early Hints\r\n\r\n" + response("200 OK", "fine"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, serving(answer))
			s := newSender(t, opened())
			for range 10 {
				require.NotZero(t, post(t, s, r.url("/")).Status)
			}
			require.Len(t, r.got(), 10)
			require.EqualValues(t, 1, r.conns.Load())
		})
	}
}

func TestAKeptConnectionThatBreaksCausesNoSecondRequest(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*peer){
		"by an end after the request":         func(*peer) {},
		"by a reset after the request":        func(p *peer) { _ = p.Conn.(*net.TCPConn).SetLinger(0) },
		"in the middle of the headers":        func(p *peer) { p.say("HTTP/1.1 200 OK\r\nContent-Le") },
		"by an end after Early Hints":         func(p *peer) { p.say("HTTP/1.1 103 Early Hints\r\n\r\n") },
		"by the 408 that some servers send":   func(p *peer) { p.say("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n") },
		"by something that is no HTTP at all": func(p *peer) { p.say("sorry\r\n\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, func(p *peer) {
				if !p.request() || !p.say(response("200 OK", "fine")) {
					return
				}
				if p.request() {
					breaks(p)
				}
			})
			s := newSender(t, opened())
			require.True(t, post(t, s, r.url("/")).OK())
			out := post(t, s, r.url("/"))
			require.Contains(t, []Class{ConnectionReset, HTTPStatus}, out.Error)
			require.Len(t, r.got(), 2, "exactly one request for each attempt")
			require.EqualValues(t, 1, r.conns.Load(), "no fresh connection was tried")
		})
	}
}

func TestAConnectionThatDiedWhileIdleCostsAtMostOneAttempt(t *testing.T) {
	t.Parallel()
	r := receive(t, func(p *peer) {
		p.request()
		p.say(response("200 OK", "fine"))
	})
	s := newSender(t, opened())
	for i := range 20 {
		before := len(r.got())
		out := post(t, s, r.url("/"))
		// The attempt may or may not notice the closed connection before it writes the request. In
		// both cases the request is sent at most once.
		require.LessOrEqual(t, len(r.got())-before, 1, "attempt %d", i)
		if !out.OK() {
			require.Equal(t, ConnectionReset, out.Error)
		}
	}
}

func TestNoDeliveryArrivesTwiceFromConnectionsThatBreakAtRandom(t *testing.T) {
	t.Parallel()
	r := receive(t, func(p *peer) {
		for n := 1; p.request(); n++ {
			if (n+p.nth)%3 == 0 {
				return // after the request was read, before any answer
			}
			if !p.say(response("200 OK", "fine")) {
				return
			}
		}
	})
	s := newSender(t, opened())
	var attempts sync.WaitGroup
	for worker := range 16 {
		attempts.Go(func() {
			for i := range 20 {
				s.Send(t.Context(), Request{
					URL: r.url("/"), Secret: testSecret, EventType: "e",
					DeliveryID: fmt.Sprintf("dlv_%d_%d", worker, i), Body: []byte("{}"),
				})
			}
		})
	}
	attempts.Wait()
	seen := map[string]int{}
	for _, got := range r.got() {
		seen[got.header.Get(webhook.HeaderDelivery)]++
	}
	require.NotEmpty(t, seen)
	for id, n := range seen {
		require.Equal(t, 1, n, id)
	}
}

func TestAnAnswerThatIsNotReadToItsEndFreesItsConnection(t *testing.T) {
	t.Parallel()
	r := receive(t, func(p *peer) {
		for p.request() {
			if !p.say(response("200 OK", string(make([]byte, 1<<20)))) {
				return
			}
		}
	})
	s := newSender(t, opened())
	for range 3 {
		require.True(t, post(t, s, r.url("/")).OK())
	}
	require.EqualValues(t, 3, r.conns.Load())
}
