package workflows_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
)

// link is a proxy to a server that a test can cut or stall.
type link struct {
	// address is the link's own address.
	address string

	to    string
	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]bool
	// stalled is locked while the link passes no data.
	stalled sync.RWMutex
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &link{address: listener.Addr().String(), to: to, open: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = listener.Close(); l.cut() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(c)
		}
	}()
	return l
}

// carry copies both ways until one side ends or the link is cut.
func (l *link) carry(from net.Conn) {
	defer func() { _ = from.Close() }()
	to, err := net.Dial("tcp", l.to)
	if err != nil || !l.keep(from, to) {
		return
	}
	defer func() { _ = to.Close() }()
	go func() {
		_, _ = io.Copy(slow{to, &l.stalled}, from)
		_ = to.Close()
	}()
	_, _ = io.Copy(slow{from, &l.stalled}, to)
}

// slow writes only while the link isn't stalled.
type slow struct {
	io.Writer
	stalled *sync.RWMutex
}

func (s slow) Write(p []byte) (int, error) {
	s.stalled.RLock()
	defer s.stalled.RUnlock()
	return s.Writer.Write(p)
}

func (l *link) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		if l.isCut {
			_ = c.Close()
		} else {
			l.open[c] = true
		}
	}
	return !l.isCut
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
	for c := range l.open {
		_ = c.Close()
	}
	clear(l.open)
}

func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = false
}

// databaseLink returns a link to a new database, and the database's URL through the link.
func databaseLink(t *testing.T) (l *link, byLink string) {
	t.Helper()
	u, err := url.Parse(testkit.Database(t))
	require.NoError(t, err)
	l = newLink(t, u.Host)
	u.Host = l.address
	return l, u.String()
}

func TestAnAttemptThatEndsWhileTheDatabaseIsAwayIsRecordedAndNotMadeAgain(t *testing.T) {
	t.Parallel()
	way, database := databaseLink(t)
	logs := testkit.NewLogs()
	b := setup(t, apptest.Options{Worker: true, DatabaseURL: database, Logs: logs.Logger()})
	b.receiver.Answer(func(int, testkit.Received) int {
		way.cut()
		return http.StatusOK
	})
	b.post(t)
	require.Eventually(t, func() bool { return strings.Contains(logs.String(), "record an attempt again") }, testkit.Wait, 10*time.Millisecond)
	way.mend()
	require.Len(t, b.delivery(t, "succeeded")["attempts"], 1)
	require.Len(t, b.receiver.All(), 1)
}

func TestADatabaseThatIsAwayUsesUpNoneOfTheReceiversAttempts(t *testing.T) {
	t.Parallel()
	way, database := databaseLink(t)
	b := setup(t, apptest.Options{
		Worker: true, DatabaseURL: database, Environ: []string{"EARSHOT_WEBHOOK_RETRY_DELAYS=1s,1h,1h,1h"},
	})
	b.receiver.Answer(answers(500))
	b.post(t)
	id := b.receiver.Await(t, 1)[0].DeliveryID()
	b.waits(t, id, 2)
	way.cut()
	// Temporal repeats the activity, and the row isn't read.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		d, err := b.app.Temporal.DescribeWorkflowExecution(t.Context(), id, "")
		require.NoError(c, err)
		require.Len(c, d.GetPendingActivities(), 1)
		require.Greater(c, d.GetPendingActivities()[0].GetAttempt(), int32(2))
	}, testkit.Wait, testkit.Tick)
	way.mend()
	require.Len(t, b.delivery(t, "succeeded")["attempts"], 2)
	require.Len(t, b.receiver.All(), 2)
}

// pendingActivity returns the activity that a delivery's run has under way, or nil.
func pendingActivity(ctx context.Context, t require.TestingT, temporal client.Client, id string) *workflowpb.PendingActivityInfo {
	d, err := temporal.DescribeWorkflowExecution(ctx, id, "")
	require.NoError(t, err)
	if len(d.GetPendingActivities()) == 0 {
		return nil
	}
	return d.GetPendingActivities()[0]
}

func TestTemporalHearsOfAnAttemptUnderWayMoreThanOnceWithinItsTimeout(t *testing.T) {
	tier.Slow(t, "waits for timeouts of Temporal")
	t.Parallel()
	b := setup(t, apptest.Options{Worker: true, Environ: []string{"EARSHOT_WEBHOOK_RETRY_DELAYS=0s,1h,1h,1h"}})
	heard := make(chan struct{})
	defer close(heard)
	b.receiver.Answer(func(n int, _ testkit.Received) int {
		if n == 2 {
			<-heard
		}
		return http.StatusInternalServerError
	})
	b.post(t)
	id := b.receiver.Await(t, 2)[0].DeliveryID()
	beats := map[time.Time]bool{}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		if at := pendingActivity(t.Context(), c, b.app.Temporal, id).GetLastHeartbeatTime(); at != nil {
			beats[at.AsTime()] = true
		}
		require.Len(c, beats, 2)
	}, testkit.Wait, testkit.Tick)
}

// Temporal times out an activity that sends no heartbeat for 12 s. Here an attempt lasts longer
// than that, because the receiver may take a minute to answer.
func TestAnAttemptUnderWayIsMadeOnceWhenTemporalStallsAndGivesItsActivityUp(t *testing.T) {
	tier.Slow(t, "waits for the heartbeat timeout of Temporal, 12 s")
	t.Parallel()
	o := testkit.Namespace(t)
	direct, err := client.DialContext(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(direct.Close)
	way := newLink(t, o.HostPort)
	o.HostPort = way.address
	b := setup(t, apptest.Options{
		Worker: true, Temporal: &o, Environ: []string{"EARSHOT_WEBHOOK_RETRY_DELAYS=0s,1h,1h,1h"}, Decorate: []any{apptest.PatientSender},
	})
	answer := make(chan struct{})
	release := sync.OnceFunc(func() { close(answer) })
	defer release()
	b.receiver.Answer(func(n int, _ testkit.Received) int {
		if n == 1 {
			return http.StatusInternalServerError
		}
		<-answer
		return http.StatusOK
	})
	b.post(t)
	id := b.receiver.Await(t, 2)[0].DeliveryID() // the second attempt is an activity with heartbeats

	way.stalled.Lock()
	resume := sync.OnceFunc(way.stalled.Unlock)
	defer resume()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.Equal(c, int32(2), pendingActivity(t.Context(), c, direct, id).GetAttempt())
	}, testkit.Wait, testkit.Tick)
	require.Len(t, b.receiver.All(), 2, "the attempt is under way")
	resume()
	// The activity's second try finds the row's lease, and the run waits.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.Nil(c, pendingActivity(t.Context(), c, direct, id))
	}, testkit.Wait, testkit.Tick)
	release()
	require.Len(t, b.delivery(t, "succeeded")["attempts"], 2)
	require.Len(t, b.receiver.All(), 2)
}
