package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/memory"
	"earshot/internal/testkit/tier"
)

// slowly sends a request without the end of its body and reads only the beginning of the answer.
// tells counts these answers.
func (p *program) slowly(head, body string, tells *atomic.Int64) {
	c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://")) //nolint:noctx // to our own program
	require.NoError(p.t, err)
	p.t.Cleanup(func() { c.Close() })
	require.NoError(p.t, c.(*net.TCPConn).SetReadBuffer(4<<10))
	go func() {
		_, _ = io.WriteString(c, head+" HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer "+p.key+
			fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n", len(body))+body[:max(0, len(body)-1)])
		if _, err := c.Read(make([]byte, 16)); err == nil {
			tells.Add(1)
		}
	}()
}

// A process accepts 2,048 connections. A tenth of the pages are lists of 9 MB, which together are more than three
// times the memory for answers. More lists would only keep Postgres busy, because it measures each.
func TestAThousandSlowLargeBodiesAndAThousandUnreadPagesStayWithinTheBudget(t *testing.T) {
	tier.Slow(t, "2,000 slow connections")
	t.Parallel()
	const each, pageful = 1000, 36
	p := newProgram(t, temporalSettings(t)...)
	s := p.serve()
	p.board = p.must(http.MethodPost, "/v1/boards", map[string]any{"name": "Ideas"})
	posts := "/v1/boards/" + p.board + "/posts"
	large := map[string]any{"text": "x", "json": map[string]any{"x": strings.Repeat("a", 255<<10)}}
	var post string
	for range pageful {
		post = p.must(http.MethodPost, posts, map[string]any{"title": "Large", "body": large})
	}
	before := s.memory("VmRSS")
	body := `{"title":"` + strings.Repeat("a", 1<<20-12) + `"}`
	var bodies, pages atomic.Int64
	for i := range each {
		p.slowly("POST "+posts, body, &bodies)
		page := "/v1/posts/" + post
		if i%10 == 0 {
			page = posts + "?limit=100"
		}
		p.slowly("GET "+page, "", &pages)
		if i%100 == 0 {
			p.requireAnswers()
		}
	}
	// The service waits for the bodies that found memory and refuses the other requests.
	withMemory := int64(memory.Bodies / memory.BodyCost >> 20)
	require.Eventually(t, func() bool { return bodies.Load() >= each-withMemory && pages.Load() == each }, 2*waitLimit, 10*time.Millisecond)
	p.requireAnswers()
	during, most := s.memory("VmRSS"), s.memory("VmHWM")
	t.Logf("%d MiB before, %d MiB with 2,000 slow connections, %d MiB at most; the budget is %d",
		before, during, most, memory.Process>>20)
	require.Less(t, most, memory.Process>>20)
	requireRuns(t, s)
}
