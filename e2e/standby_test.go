package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"earshot/e2e/faults/check"
	"earshot/e2e/faults/ledger"
	faults "earshot/e2e/faults/receiver"
	"earshot/internal/devstack"
	"earshot/internal/testkit/production"
	"earshot/internal/testkit/tier"
)

const (
	posters = 4
	// healthy is the name of the endpoint in the ledger.
	healthy = "healthy"
	// swept bounds the wait for deliveries that only the sweep finds. It covers its grace period of
	// 30 s, the minute between two sweeps, and a lease.
	swept = 3 * time.Minute
)

// startPostgres starts a Postgres that keeps committed data over a kill. It follows the primary, if
// there is one.
func startPostgres(t *testing.T, primary *devstack.Postgres) *devstack.Postgres {
	t.Helper()
	dir := t.TempDir()
	// The user postgres needs access, and the parent directory is closed to other users.
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
	o := devstack.PostgresOptions{Dir: dir, Durable: true, Report: t.Logf}
	if primary != nil {
		var err error
		o, err = production.Following(primary, o)
		require.NoError(t, err)
	}
	p, err := devstack.StartPostgres(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		select {
		case <-p.Done(): // A killed Postgres left its shared memory, and a new start frees it.
			p, err = devstack.StartPostgres(context.Background(), o)
			require.NoError(t, err)
		default:
		}
		require.NoError(t, p.Stop(context.Background()))
		require.NoError(t, devstack.Remove(dir))
	})
	return p
}

// several returns the URL of a database that is on one of the servers.
func several(t *testing.T, database string, servers ...*devstack.Postgres) string {
	t.Helper()
	u, err := url.Parse(servers[0].URL(database))
	require.NoError(t, err)
	u.Host = ""
	for i, s := range servers {
		if i > 0 {
			u.Host += ","
		}
		u.Host += net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port()))
	}
	return u.String()
}

// migrate creates the tables of a database.
func migrate(t *testing.T, database string) {
	t.Helper()
	out, err := (&program{t: t, env: append(cleanEnviron(), "DATABASE_URL="+database)}).command("migrate")
	require.NoError(t, err, out)
}

// setUpTemporal registers the search attributes in the default namespace of the test's server. It
// returns when the server knows them, which takes a moment.
func (p *program) setUpTemporal() client.Client {
	p.t.Helper()
	out, err := p.command("temporal", "setup", "--file", repository+"/temporal-dev.yaml")
	require.NoError(p.t, err, out)
	c := dial(p.t, client.Options{HostPort: p.setting("TEMPORAL_ADDRESS")})
	require.Eventually(p.t, func() bool {
		_, err := c.ListWorkflow(p.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: "DeliveryID = 'none'"})
		return err == nil
	}, waitLimit, pollInterval)
	return c
}

// setting returns a variable of the program's environment.
func (p *program) setting(name string) (value string) {
	for _, pair := range p.env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// book is a receiver with a ledger, together with the writes that the API acknowledged. The checker
// of the fault harness needs both.
type book struct {
	*faults.Receiver
	url       string
	path      string
	endpoints map[string]string

	mu           sync.Mutex
	acknowledged []check.Write
	// refused counts the other answers by their status.
	refused map[int]int
}

func newBook(t *testing.T) *book {
	t.Helper()
	b := &book{path: filepath.Join(t.TempDir(), "ledger.jsonl"), endpoints: map[string]string{}, refused: map[int]int{}}
	l, err := ledger.Create(b.path)
	require.NoError(t, err)
	b.Receiver = faults.New(l)
	server := httptest.NewServer(b)
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, b.Err())
		require.NoError(t, l.Close())
	})
	b.url = server.URL + faults.Prefix + healthy
	return b
}

// subscribe makes a board and a webhook for its posts on the receiver.
func (b *book) subscribe(p *program) {
	p.t.Helper()
	p.board = p.must(http.MethodPost, "/v1/boards", map[string]any{"name": "Ideas"})
	status, made := p.send(http.MethodPost, "/v1/webhooks", map[string]any{"url": b.url, "events": []string{"post.created"}})
	require.Equal(p.t, http.StatusCreated, status)
	b.endpoints[fmt.Sprint(made["id"])] = healthy
	b.Add(faults.Endpoint{Name: healthy, Secret: fmt.Sprint(made["secret"]), Behaviour: faults.Healthy})
}

// since counts the writes that were acknowledged after a moment.
func (b *book) since(moment time.Time) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.acknowledged {
		if w.At.After(moment) {
			n++
		}
	}
	return n
}

// load posts until stop is closed, and returns after the last answer.
func (b *book) load(p *program, stop <-chan struct{}) {
	var all sync.WaitGroup
	for poster := range posters {
		all.Go(func() {
			for i := 0; ; i++ {
				status, data := p.send(http.MethodPost, "/v1/boards/"+p.board+"/posts",
					map[string]any{"title": fmt.Sprintf("Idea %d of %d", i, poster)})
				b.mu.Lock()
				if status == http.StatusCreated {
					b.acknowledged = append(b.acknowledged,
						check.Write{Subject: fmt.Sprint(data["id"]), Type: "post.created", At: time.Now()})
				} else {
					b.refused[status]++
				}
				b.mu.Unlock()
				select {
				case <-stop:
					return
				case <-time.After(pollInterval): // Twenty posts a second from each goroutine are enough load.
				}
			}
		})
	}
	all.Wait()
}

// check waits until every delivery has ended, and compares the ledger and the writes with the
// database.
func (b *book) check(t *testing.T, database string, kills ...check.Kill) check.Report {
	t.Helper()
	require.Eventually(t, func() bool {
		n, err := check.Pending(t.Context(), database)
		return err == nil && n == 0
	}, swept, pollInterval, "deliveries are pending")
	report, err := check.Run(t.Context(), check.Input{
		LedgerPath: b.path, Database: database, Acknowledged: b.acknowledged, Kills: kills,
		MaxAttempts: 5, DisabledAfter: 50, Endpoints: b.endpoints,
	})
	require.NoError(t, err)
	t.Log(report)
	require.Empty(t, report.Violations)
	return report
}

// TestAStandbyIsPromotedInTheMiddleOfARunAndNothingAcknowledgedIsLost kills the primary, which has
// the databases of the service and of Temporal. The service's processes list the two servers in
// different orders.
func TestAStandbyIsPromotedInTheMiddleOfARunAndNothingAcknowledgedIsLost(t *testing.T) {
	tier.Slow(t, "promotes a standby")
	t.Parallel()
	const name = "earshot"
	primary := startPostgres(t, nil)
	require.NoError(t, primary.CreateDatabase(t.Context(), name))
	standby := startPostgres(t, primary)
	require.NoError(t, production.Synchronize(t.Context(), primary))
	database := several(t, name, primary, standby) + "&target_session_attrs=read-write"
	migrate(t, database)
	programs, err := production.BuildPrograms(t.Context(), repository, t.Logf)
	require.NoError(t, err)
	temporal, err := production.StartTemporal(t.Context(), production.TemporalOptions{
		Dir: t.TempDir(), Programs: programs, Report: t.Logf,
		Database: several(t, "postgres", primary, standby) + "&target_session_attrs=read-write",
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = temporal.Stop(context.Background()) })
	p := newProgramOn(t, database, "TEMPORAL_ADDRESS="+temporal.Address())
	p.setUpTemporal()
	processes := []*process{p.serveAlone(), p.worker(), p.worker("DATABASE_URL=" + several(t, name, standby, primary))}
	b := newBook(t)
	b.subscribe(p)

	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { defer close(stopped); b.load(p, stop) }()
	end := sync.OnceFunc(func() { close(stop); <-stopped })
	t.Cleanup(end)
	began := time.Now()
	require.Eventually(t, func() bool { return b.since(began) >= 100 }, waitLimit, pollInterval)
	killed := time.Now()
	primary.Kill()
	require.NoError(t, production.Promote(t.Context(), standby))
	promoted := time.Now()
	require.Eventually(t, func() bool { return b.since(promoted) >= 100 }, waitLimit, pollInterval, "the API goes on")
	end()
	t.Logf("promoted after %s; other answers: %v", promoted.Sub(killed), b.refused)
	for status := range b.refused {
		require.Contains(t, []int{http.StatusServiceUnavailable, http.StatusInternalServerError}, status)
	}
	// If the answer to a commit is lost, its outcome is unknown. The API then answers 500, not 503.
	require.LessOrEqual(t, b.refused[http.StatusInternalServerError], posters)

	report := b.check(t, standby.URL(name), check.Kill{What: "postgres", At: killed, Back: promoted})
	require.Equal(t, len(b.acknowledged), report.Acknowledged)
	for _, s := range processes {
		select {
		case <-s.ended:
			require.Fail(t, "a process ended", "%s", s.log)
		default:
		}
	}
	p.awaitStatus("/readyz", http.StatusOK)
}
