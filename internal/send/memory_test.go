package send

import (
	"bytes"
	"log"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests of this file aren't parallel, because they measure or redirect state of the whole
// process.

// flood sends the same chunk until the connection fails or the amount, in bytes, is sent. It
// returns the number of bytes sent.
func flood(p *peer, chunk string, amount int) int {
	bytes, sent := []byte(chunk), 0
	for sent < amount {
		n, err := p.Write(bytes)
		sent += n
		if err != nil {
			break
		}
	}
	return sent
}

func TestAnEndlessAnswerFillsNeitherMemoryNorTheNetwork(t *testing.T) {
	line := "X-Filler: " + strings.Repeat("x", 8<<10) + "\r\n"
	for name, c := range map[string]struct {
		begin, chunk string
		amount       int
		want         Class
	}{
		"a body of 1 GiB":                {"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n", strings.Repeat("x", 64<<10), 1 << 30, ""},
		"a body of 1 GiB in chunks":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "8000\r\n" + strings.Repeat("x", 32<<10) + "\r\n", 1 << 30, ""},
		"a body of 1 GiB after an error": {"HTTP/1.1 500 No\r\n\r\n", strings.Repeat("x", 64<<10), 1 << 30, HTTPStatus},
		"200 MB of headers":              {"HTTP/1.1 200 OK\r\n", line, 200 << 20, HTTPStatus},
		"200 MB of tiny headers":         {"HTTP/1.1 200 OK\r\n", strings.Repeat("a:\r\n", 16<<10), 200 << 20, HTTPStatus},
		"one header of 200 MB":           {"HTTP/1.1 200 OK\r\nX: ", strings.Repeat("x", 64<<10), 200 << 20, HTTPStatus},
		"a status line of 200 MB":        {"HTTP/1.1 200 ", strings.Repeat("x", 64<<10), 200 << 20, HTTPStatus},
		"200 MB of 103 Early Hints":      {"", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1<<10), 200 << 20, HTTPStatus},
		"a chunk size of 200 MB":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", strings.Repeat("0", 64<<10), 200 << 20, ""},
		"200 MB of chunk extensions":     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1;" + strings.Repeat("x", 2<<10) + "\r\nx\r\n", 200 << 20, ""},
		"trailers of 200 MB":             {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", line, 200 << 20, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sent := make(chan int, 1)
			r := receive(t, func(p *peer) {
				p.request()
				p.say(c.begin)
				sent <- flood(p, c.chunk, c.amount)
			})
			s := newSender(t, opened())
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			out := post(t, s, r.url("/"))
			runtime.ReadMemStats(&after)
			require.Equal(t, c.want, out.Error)
			// TotalAlloc includes freed memory. The limits of an attempt add up to 150 KiB, and
			// parsed headers cost a multiple of their size.
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
			// The sent bytes are in the buffers of the two sockets, which take a few megabytes on
			// loopback.
			require.Less(t, <-sent, 32<<20)
		})
	}
}

func TestBytesAfterAnAnswerReachNeitherTheLogNorTheNextAttempt(t *testing.T) {
	var printed bytes.Buffer
	before := log.Writer()
	log.SetOutput(&printed)
	t.Cleanup(func() { log.SetOutput(before) })
	for name, answer := range map[string]string{
		"after a 204":            "HTTP/1.1 204 No Content\r\n\r\n",
		"after a 304":            "HTTP/1.1 304 Not Modified\r\n\r\n",
		"after a body":           response("200 OK", "fine"),
		"after chunks":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\n\r\n",
		"after an empty body":    response("500 No", ""),
		"after a body of 16 KiB": response("200 OK", strings.Repeat("x", maxKept)),
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{})
			r := receive(t, func(p *peer) {
				p.request()
				if p.nth > 1 {
					p.say(response("202 Accepted", ""))
					return
				}
				p.say(answer + response("418 Forged", "t0ken"))
				p.untilGone() // the transport prints before it closes
				close(gone)
			})
			s := newSender(t, opened())
			require.NotEqual(t, 418, post(t, s, r.url("/?token=t0ken")).Status)
			<-gone
			require.Equal(t, 202, post(t, s, r.url("/?token=t0ken")).Status)
		})
	}
	require.Empty(t, printed.String())
}

func TestAReceiverThatSpeaksFirstIsNotLogged(t *testing.T) {
	var printed bytes.Buffer
	before := log.Writer()
	log.SetOutput(&printed)
	t.Cleanup(func() { log.SetOutput(before) })
	r := receive(t, func(p *peer) {
		p.say("220 mail.test ESMTP t0ken\r\n")
		p.untilGone()
	})
	out := post(t, newSender(t, opened()), r.url("/"))
	require.Contains(t, []Class{HTTPStatus, ConnectionReset}, out.Error)
	require.Empty(t, printed.String())
}

func TestAnIdleConnectionYieldsNothing(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _ = far.Close() }()
	conn := newQuietConn(near, near)
	go func() { _, _ = far.Write([]byte("unasked")) }()
	n, err := conn.Read(make([]byte, 16))
	require.Zero(t, n)
	require.Error(t, err)
	require.NoError(t, conn.Close())
}
