package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/devstack"
	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
)

// replica is one of several APIs of a deployment. The test kills and restarts it.
type replica struct {
	*program
	running *process
	// logs are the logs of all its processes.
	logs []*testkit.Logs
}

func (r *replica) launch() {
	r.t.Helper()
	r.running = r.start([]string{"serve", "--no-worker"}, "EARSHOT_LISTEN="+strings.TrimPrefix(r.url, "http://"))
	r.logs = append(r.logs, r.running.log)
}

// replicas starts APIs and waits until they answer.
func replicas(t *testing.T, p *program, n int) []*replica {
	t.Helper()
	all := make([]*replica, n)
	for i := range all {
		port, err := devstack.FreePort()
		require.NoError(t, err)
		same := *p
		same.url = fmt.Sprintf("http://127.0.0.1:%d", port)
		all[i] = &replica{program: &same}
		all[i].launch()
	}
	for _, r := range all {
		r.awaitStatus("/healthz", http.StatusOK)
	}
	return all
}

// decidedAlone counts requests that a process accepted without an answer from the database, which
// may be late on a busy machine.
func decidedAlone(all []*replica) (n int) {
	for _, r := range all {
		for _, log := range r.logs {
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, "kept without the database") && strings.Contains(line, `"passed":true`) {
					n++
				}
			}
		}
	}
	return n
}

// answers counts the answers by status, and missing answers as 0.
type answers struct {
	mu sync.Mutex
	of map[int]int
}

func (a *answers) count(statuses ...int) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, status := range statuses {
		n += a.of[status]
	}
	return n
}

// ask sends requests with a key until the context ends.
func (a *answers) ask(ctx context.Context, r *replica, key string) {
	for ctx.Err() == nil {
		status := statusOf(r.url, key)
		a.mu.Lock()
		a.of[status]++
		a.mu.Unlock()
		if status == 0 {
			awaitAnswer(ctx, r.url)
		}
	}
}

// statusOf returns the status of one request, or 0 if the process was killed meanwhile.
func statusOf(url, key string) int {
	request, err := http.NewRequest(http.MethodGet, url+"/v1/me", nil)
	if err != nil {
		panic(err) // The test made the address.
	}
	request.Header.Set("Authorization", "Bearer "+key)
	answer, err := httpClient.Do(request)
	if err != nil {
		return 0
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, answer.Body) // This allows reuse of the connection.
	return answer.StatusCode
}

// awaitAnswer waits until a process answers.
func awaitAnswer(ctx context.Context, url string) {
	for looks := time.NewTicker(pollInterval); ; {
		select {
		case <-ctx.Done():
			return
		case <-looks.C:
		}
		if answer, err := httpClient.Get(url + "/healthz"); err == nil {
			_ = answer.Body.Close()
			return
		}
	}
}

func TestThreeReplicasKeepOneRateLimitWhileTheyAreKilled(t *testing.T) {
	tier.Slow(t, "kills replicas")
	t.Parallel()
	// A replica may lease one second's worth.
	const limit, lease, n, kills = 3000, 3000 / 60, 3, 6
	p := newProgram(t, append(temporalSettings(t), fmt.Sprint("EARSHOT_RATE_LIMIT=", limit), "EARSHOT_LOG_LEVEL=warn")...)
	all := replicas(t, p, n)

	ctx, stop := context.WithCancel(t.Context())
	got, began := &answers{of: map[int]int{}}, time.Now()
	var clients sync.WaitGroup
	t.Cleanup(func() { stop(); clients.Wait() })
	for _, r := range all {
		for range 2 {
			clients.Go(func() { got.ask(ctx, r, p.key) })
		}
	}
	await := func(what string, more int, statuses ...int) {
		t.Helper()
		wanted := got.count(statuses...) + more
		require.Eventually(t, func() bool { return got.count(statuses...) >= wanted }, waitLimit, pollInterval, what)
	}
	for range kills {
		await("some pass", 50+rand.IntN(300), http.StatusOK)
		victim := all[rand.IntN(n)]
		victim.running.signal(os.Kill)
		victim.launch()
	}
	await("the budget is used up", 200, http.StatusTooManyRequests)
	stop()
	clients.Wait()
	passed, refilled := got.count(http.StatusOK), int(time.Since(began).Seconds()*limit/60)+1
	alone := decidedAlone(all)
	t.Logf("%d passed of %d and %d, %d of them without the database; %v", passed, limit, refilled, alone, got.of)
	require.Less(t, alone, limit/2, "it is about those that the database decided")
	require.LessOrEqual(t, passed, limit+refilled+n*lease+alone)
	require.GreaterOrEqual(t, passed, limit-(n+kills)*lease-got.count(0))

	var made map[string]any
	p.json(&made, "key", "create", "--json")
	all[0].awaitStatus("/healthz", http.StatusOK) // It may be the last one that was killed.
	key, passed := fmt.Sprint(made["key"]), 0
	for statusOf(all[0].url, key) == http.StatusOK {
		passed++
	}
	require.GreaterOrEqual(t, passed, limit, "all of the budget is there for whoever is alone")
}
