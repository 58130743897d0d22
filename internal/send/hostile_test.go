package send

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// verdictOn makes one attempt at a receiver that follows the script.
func verdictOn(t *testing.T, o Options, script func(*peer)) Outcome {
	t.Helper()
	r := receive(t, script)
	out := post(t, newSender(t, o), r.url("/"))
	require.LessOrEqual(t, len(r.got()), 1, "an attempt is one request")
	require.EqualValues(t, 1, r.conns.Load())
	return out
}

func TestAny2xxAnswerIsASuccess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		status int
		body   string
	}{
		"200 with a body":                      {response("200 OK", "fine"), 200, "fine"},
		"200 without a body":                   {response("200 OK", ""), 200, ""},
		"200 that ends with the connection":    {"HTTP/1.1 200 OK\r\n\r\nfine", 200, "fine"},
		"200 of HTTP/1.0":                      {"HTTP/1.0 200 OK\r\n\r\nfine", 200, "fine"},
		"200 without a reason phrase":          {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, ""},
		"200 in chunks":                        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\n\r\n", 200, "fine"},
		"200 with a broken chunk":              {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\nzz\r\n", 200, "fine"},
		"200 with less body than announced":    {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfine", 200, "fine"},
		"200 with more body than announced":    {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine and more", 200, "fine"},
		"202":                                  {response("202 Accepted", "later"), 202, "later"},
		"204":                                  {"HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
		"204 with a body":                      {response("204 No Content", "surprise"), 204, ""},
		"299":                                  {response("299 Whatever", ""), 299, ""},
		"a body that is not UTF-8 or has NULs": {response("200 OK", "\xff\xfe\x00"), 200, "\xff\xfe\x00"},
		"200 after a few 1xx":                  {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + response("200 OK", "fine"), 200, "fine"},
		"200 after 1,000 bare 103":             {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1000) + response("200 OK", "fine"), 200, "fine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := verdictOn(t, opened(), answering(c.answer))
			require.True(t, out.OK(), out.Error)
			require.Equal(t, c.status, out.Status)
			require.Equal(t, c.body, string(out.Body))
		})
	}
}

func TestAnyOtherStatusIsAFailureThatIsRecorded(t *testing.T) {
	t.Parallel()
	for _, status := range []int{99, 101, 400, 401, 404, 408, 410, 418, 429, 500, 502, 503, 599, 600, 999} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			out := verdictOn(t, opened(), answering(response(fmt.Sprintf("%03d Status", status), "no")))
			require.Equal(t, HTTPStatus, out.Error)
			require.Equal(t, status, out.Status)
			if status >= 200 {
				require.Equal(t, "no", string(out.Body))
			}
		})
	}
}

func TestAnAnswerThatIsNotHTTPIsAFailureWithoutAStatus(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		want   Class
	}{
		"a garbage status line":                       {"SSH-2.0-OpenSSH_9.9\r\n\r\n", HTTPStatus},
		"a status that is no number":                  {"HTTP/1.1 2x0 OK\r\n\r\n", HTTPStatus},
		"a status of four digits":                     {"HTTP/1.1 2000 OK\r\n\r\n", HTTPStatus},
		"a header without a colon":                    {"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", HTTPStatus},
		"a length that is no number":                  {"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", HTTPStatus},
		"two lengths that differ":                     {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", HTTPStatus},
		"an unknown transfer encoding":                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: rot13\r\n\r\n", HTTPStatus},
		"1,000 times 103 with headers":                {strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: "+strings.Repeat("x", 90)+"\r\n\r\n", 1000), HTTPStatus},
		"headers over 64 KiB":                         {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70<<10) + "\r\n\r\n", HTTPStatus},
		"one 103 and the end":                         {"HTTP/1.1 103 Early Hints\r\n\r\n", ConnectionReset},
		"half a status line and the end":              {"HTTP/1.1 20", ConnectionReset},
		"half the headers and the end":                {"HTTP/1.1 200 OK\r\nContent-Le", ConnectionReset},
		"nothing and the end":                         {"", ConnectionReset},
		"a blank line and the end, as some hosts say": {"\r\n", HTTPStatus},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := verdictOn(t, opened(), answering(c.answer))
			require.Equal(t, c.want, out.Error)
			require.Zero(t, out.Status)
		})
	}
}

// dribble writes text, and then the same byte forever.
func dribble(text, drop string) func(*peer) {
	return func(p *peer) {
		p.request()
		tick := time.NewTicker(10 * time.Millisecond) // thirty drops in an attempt of short
		defer tick.Stop()
		for next := text; p.say(next); next = drop {
			<-tick.C
		}
	}
}

func TestAReceiverThatHangsCostsItsTimeAndNoMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script func(*peer)
		want   Class
		status int
	}{
		"accepts and reads nothing":     {(*peer).untilGone, Timeout, 0},
		"reads and never answers":       {func(p *peer) { p.request(); p.untilGone() }, Timeout, 0},
		"sends headers byte by byte":    {dribble("HTTP/1.1 200 OK\r\nX: ", "x"), Timeout, 0},
		"sends 103 for ever":            {dribble("HTTP/1.1 103 Early Hints\r\n\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n"), Timeout, 0},
		"lets the body of a 200 drip":   {dribble("HTTP/1.1 200 OK\r\n\r\n", "x"), "", 200},
		"lets the chunks of a 200 drip": {dribble("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"), "", 200},
		"stalls in the body of a 200":   {func(p *peer) { p.request(); p.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"); p.untilGone() }, "", 200},
		"stalls in the body of a 500":   {func(p *peer) { p.request(); p.say("HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nx"); p.untilGone() }, HTTPStatus, 500},
		"switches to a protocol of its own": {func(p *peer) {
			p.request()
			p.say("HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			p.untilGone()
		}, HTTPStatus, 101},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := opened()
			o.Timeout = short
			out := verdictOn(t, o, c.script)
			require.Equal(t, c.want, out.Error)
			require.Equal(t, c.status, out.Status)
		})
	}
}

func TestAReceiverThatNeverReadsALargePayloadCostsItsTimeAndNoMore(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	r := receive(t, func(*peer) { <-gone })
	o := opened()
	o.Timeout = short
	out := newSender(t, o).Send(t.Context(), Request{URL: r.url("/"), Secret: testSecret, EventType: "e", DeliveryID: "d", Body: make([]byte, 32<<20)})
	close(gone)
	require.Equal(t, Timeout, out.Error)
}

func TestAnAnswerBeforeThePayloadIsReadCounts(t *testing.T) {
	t.Parallel()
	r := receive(t, func(p *peer) { p.say(response("413 Too Large", "no")); p.untilGone() })
	out := newSender(t, opened()).Send(t.Context(), Request{URL: r.url("/"), Secret: testSecret, EventType: "e", DeliveryID: "d", Body: make([]byte, 8<<20)})
	require.Contains(t, []int{413, 0}, out.Status, "0 when the answer overtakes the request")
	require.False(t, out.OK())
}

func TestAResetInTheMiddleIsToldFromAnEnd(t *testing.T) {
	t.Parallel()
	reset := func(text string) func(*peer) {
		return func(p *peer) {
			p.request()
			p.say(text)
			_ = p.Conn.(*net.TCPConn).SetLinger(0) // closing now sends RST
		}
	}
	require.Equal(t, ConnectionReset, verdictOn(t, opened(), reset("")).Error)
	out := verdictOn(t, opened(), reset("HTTP/1.1 200 OK\r\nContent-Le"))
	require.Equal(t, ConnectionReset, out.Error)
}

func TestAtMost16KiBOfAnAnswerAreKept(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, maxKept - 1, maxKept, maxKept + 1, maxRead, maxRead + 1, 1 << 20} {
		t.Run(fmt.Sprintf("of %d bytes", size), func(t *testing.T) {
			t.Parallel()
			body := strings.Repeat("abcdefg", size/7+1)[:size]
			out := verdictOn(t, opened(), answering(response("200 OK", body)))
			require.True(t, out.OK())
			require.Equal(t, body[:min(size, maxKept)], string(out.Body))
		})
	}
}

func TestACompressedAnswerIsKeptAsItCameAndNotInflated(t *testing.T) {
	t.Parallel()
	var mebibyte bytes.Buffer
	w := gzip.NewWriter(&mebibyte)
	_, err := w.Write(make([]byte, 1<<20)) // about 1 KB when packed
	require.NoError(t, err)
	require.NoError(t, w.Close())
	packed := strings.Repeat(mebibyte.String(), 50) // gzip continues with the next member
	answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(packed), packed)
	out := verdictOn(t, opened(), answering(answer))
	require.True(t, out.OK())
	require.Equal(t, packed[:maxKept], string(out.Body))
}
