package send

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/tier"
)

// hostile is a malicious receiver, with the expected class of an attempt at it.
type hostile struct {
	script func(*peer)
	tls    *tls.Config // nil is http, unless stalls is set
	stalls bool
	want   Class
}

// start starts the receiver and returns its URL.
func (h hostile) start(t *testing.T) string {
	t.Helper()
	switch {
	case h.tls != nil:
		return "https://" + receive(t, h.script, over(h.tls)).addr + "/"
	case h.stalls:
		return "https://" + receive(t, h.script).addr + "/"
	default:
		return receive(t, h.script).url("/")
	}
}

// hostiles returns all malicious receivers.
func hostiles(t *testing.T, a *authority) map[string]hostile {
	t.Helper()
	line := "X-Filler: " + strings.Repeat("x", 8<<10) + "\r\n"
	floods := func(begin, chunk string, amount int) func(*peer) {
		return func(p *peer) { p.request(); p.say(begin); flood(p, chunk, amount) }
	}
	untrusted := func(self bool, change func(*x509.Certificate)) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{a.issue(t, self, change)}}
	}
	answer := serving(response("200 OK", "fine"))
	return map[string]hostile{
		"accepts and never answers": {script: (*peer).untilGone, want: Timeout},
		"headers that drip":         {script: dribble("HTTP/1.1 200 OK\r\nX: ", "x"), want: Timeout},
		"a body that drips":         {script: dribble("HTTP/1.1 200 OK\r\n\r\n", "x"), want: ""},
		"headers of 200 MB":         {script: floods("HTTP/1.1 200 OK\r\n", line, 200<<20), want: HTTPStatus},
		"tiny headers of 200 MB":    {script: floods("HTTP/1.1 200 OK\r\n", strings.Repeat("a:\r\n", 16<<10), 200<<20), want: HTTPStatus},
		"a body of 1 GiB":           {script: floods("HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n", strings.Repeat("x", 64<<10), 1<<30), want: ""},
		"a body of 1 GiB in chunks": {script: floods("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "8000\r\n"+strings.Repeat("x", 32<<10)+"\r\n", 1<<30), want: ""},
		"a gzip that inflates":      {script: answering(inflating(t)), want: ""},
		"1,000 times 103": {
			script: answering(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1000) + response("200 OK", "")), want: "",
		},
		"103 for ever":              {script: floods("", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1<<10), 200<<20), want: HTTPStatus},
		"a length that is too long": {script: answering("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfine"), want: ""},
		"a length that is short":    {script: answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nfine"), want: ""},
		"a 204 with a body":         {script: answering(response("204 No Content", "fine")), want: ""},
		"no UTF-8, and NUL":         {script: answering(response("200 OK", "\xff\x00")), want: ""},
		"the status 999":            {script: answering(response("999 No", "")), want: HTTPStatus},
		"a garbage status line":     {script: answering("SSH-2.0-OpenSSH_9.9\r\n\r\n"), want: HTTPStatus},
		"a 1xx and the end":         {script: answering("HTTP/1.1 102 Processing\r\n\r\n"), want: ConnectionReset},
		"a redirect":                {script: answering("HTTP/1.1 307 Away\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"), want: Redirect},
		"a reset": {
			script: func(p *peer) {
				p.request()
				p.say("HTTP/1.1 200 OK\r\nX: ")
				_ = p.Conn.(*net.TCPConn).SetLinger(0)
			},
			want: ConnectionReset,
		},
		"an expired certificate": {script: answer, want: TLSError, tls: untrusted(false, func(c *x509.Certificate) {
			c.NotAfter = time.Now().Add(-time.Minute)
		})},
		"a self-signed certificate": {script: answer, want: TLSError, tls: untrusted(true, nil)},
		"another host's certificate": {script: answer, want: TLSError, tls: untrusted(false, func(c *x509.Certificate) {
			c.DNSNames, c.IPAddresses = []string{"other.test"}, nil
		})},
	}
}

// inflating returns an answer of 50 KB whose body inflates to 50 MiB.
func inflating(t *testing.T) string {
	t.Helper()
	var mebibyte bytes.Buffer
	w := gzip.NewWriter(&mebibyte)
	_, err := w.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	packed := strings.Repeat(mebibyte.String(), 50) // gzip continues with the next member
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(packed), packed)
}

// ofEach is the number of receivers of each kind. With more than twenty kinds, they fill the slots
// of three webhooks.
const ofEach = 8

// maxGrowth is the limit for the growth of the heap and of the resident memory.
const maxGrowth = 50 << 20

// TestAllHostileReceiversAtOnceCostLessThan50MiB isn't parallel, because it measures the process.
// The receivers are in the same process, so their memory counts, too.
func TestAllHostileReceiversAtOnceCostLessThan50MiB(t *testing.T) {
	tier.Slow(t, "a hundred hostile receivers at once")
	a := newAuthority(t)
	s := newSender(t, trusting(a.roots))
	all := hostiles(t, a)
	all["a stalled handshake"] = hostile{script: (*peer).untilGone, want: Timeout, stalls: true}
	type target struct {
		name, url string
		want      Class
	}
	var targets []target
	for name, h := range all {
		for range ofEach { // separate receivers, because a connection that has just ended is reset
			targets = append(targets, target{name, h.start(t), h.want})
		}
	}
	debug.FreeOSMemory()
	peak := watchMemory()
	var attempts sync.WaitGroup
	outcomes := make([]Outcome, len(targets))
	for i, to := range targets {
		attempts.Go(func() { outcomes[i] = post(t, s, to.url) })
	}
	attempts.Wait()
	heap, resident := peak()
	t.Logf("%d attempts at once, at hostile receivers of %d kinds: the heap grew by %.1f MiB, the process by %.1f MiB",
		len(targets), len(all), float64(heap)/(1<<20), float64(resident)/(1<<20))
	require.Less(t, heap, int64(maxGrowth))
	if !raceDetector { // which multiplies the memory use
		require.Less(t, resident, int64(maxGrowth))
	}
	for i, out := range outcomes {
		to := targets[i]
		require.Equal(t, to.want, out.Error, to.name)
		require.Less(t, out.Duration, AttemptTimeout+time.Second, to.name)
		require.LessOrEqual(t, len(out.Body), maxKept, to.name)
	}
	fine := receive(t, serving(response("200 OK", "fine")))
	require.True(t, post(t, s, fine.url("/")).OK(), "the sender lives")
}

// watchMemory samples the memory every few milliseconds. The returned function stops it and returns
// the highest growth of the heap and of the resident memory, in bytes. The resident growth is 0 on
// systems that don't report it.
func watchMemory() (peak func() (heap, resident int64)) {
	done, ended := make(chan struct{}), make(chan struct{})
	heap0, resident0 := memory()
	var heapMax, residentMax int64
	go func() {
		defer close(ended)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			heap, resident := memory()
			heapMax, residentMax = max(heapMax, heap-heap0), max(residentMax, resident-resident0)
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
	return func() (int64, int64) {
		close(done)
		<-ended
		return heapMax, residentMax
	}
}

func memory() (heap, resident int64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if runtime.GOOS == "linux" {
		var size int64
		text, _ := os.ReadFile("/proc/self/statm") // in pages: all, resident, …
		_, _ = fmt.Sscan(string(text), &size, &resident)
	}
	return int64(sample[0].Value.Uint64()), resident * int64(os.Getpagesize())
}
