package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/tier"
)

// TestAStopFailsNoRequestOfClientsThatHeedReadiness uses clients that act like a balancer's. They
// keep their connections, check /readyz beside their requests, and leave when it reports not ready.
func TestAStopFailsNoRequestOfClientsThatHeedReadiness(t *testing.T) {
	tier.Slow(t, "load during a stop")
	t.Parallel()
	const (
		clients = 64
		// askEvery is the balancer's check interval, much shorter than the service's delay.
		askEvery = 50 * time.Millisecond
		// mostAsks is how many checks may get 503 before the balancer's clients leave.
		mostAsks = 20
	)
	p := newProgram(t, append(temporalSettings(t), "EARSHOT_DRAIN_DELAY=2s")...)
	api := p.serveAlone()
	var (
		all      sync.WaitGroup
		leaving  atomic.Bool
		answered atomic.Int64
		closed   atomic.Int64 // Connections that the service asked the client to close.
	)
	for i := range clients {
		own := &http.Client{Transport: &http.Transport{}, Timeout: waitLimit}
		all.Go(func() {
			for n := 0; !leaving.Load(); n++ {
				// Each client has its own rhythm, so that some connection is idle at any time.
				time.Sleep(time.Duration(n%(i+2)) * time.Millisecond)
				body := fmt.Sprintf(`{"externalUserId":"user-%d-%d"}`, i, n%7)
				r, err := http.NewRequest(http.MethodPost, p.url+"/v1/contacts/identify", strings.NewReader(body))
				if !assert.NoError(t, err) {
					return
				}
				r.Header.Set("Authorization", "Bearer "+p.key)
				answer, err := own.Do(r)
				if !assert.NoError(t, err, "request %d of client %d", n, i) {
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
				assert.Less(t, answer.StatusCode, 300)
				answered.Add(1)
				if answer.Close {
					closed.Add(1)
				}
			}
		})
	}
	require.Eventually(t, func() bool { return answered.Load() > 10*clients }, waitLimit, pollInterval)
	all.Go(func() {
		told := 0
		for ask := (&http.Client{Timeout: waitLimit}); ; {
			answer, err := ask.Get(p.url + "/readyz")
			if !assert.NoError(t, err, "it says that it leaves before it is gone") {
				leaving.Store(true)
				return
			}
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusServiceUnavailable {
				told++
			}
			// Clients stay until a connection has ended, but at most half of the available time.
			if told > 0 && (closed.Load() > 0 || told == mostAsks) {
				leaving.Store(true)
				return
			}
			time.Sleep(askEvery)
		}
	})
	require.Zero(t, api.signal(syscall.SIGTERM), "exit code of an orderly stop")
	all.Wait()
	require.Positive(t, closed.Load(), "connections end with an answer, not between two requests")
}
