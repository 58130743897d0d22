package workflows_test

import (
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

	"earshot/internal/testkit"
)

// link is the way to a database, which a test can cut.
type link struct {
	// url is the database's by this way.
	url string

	to    string
	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]bool
}

func newLink(t *testing.T, database string) *link {
	t.Helper()
	u, err := url.Parse(database)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &link{to: u.Host, open: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = listener.Close(); l.cut() })
	u.Host = listener.Addr().String()
	l.url = u.String()
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
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
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

func TestAnAttemptThatEndsWhileTheDatabaseIsAwayIsRecordedAndNotMadeAgain(t *testing.T) {
	t.Parallel()
	way, logs := newLink(t, testkit.Database(t)), testkit.NewLogs()
	b := setup(t, testkit.Options{Worker: true, DatabaseURL: way.url, Logs: logs.Logger()})
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
	way := newLink(t, testkit.Database(t))
	b := setup(t, testkit.Options{
		Worker: true, DatabaseURL: way.url, Environ: []string{"EARSHOT_WEBHOOK_RETRY_DELAYS=1s,1h,1h,1h"},
	})
	b.receiver.Answer(answers(500))
	b.post(t)
	id := b.receiver.Await(t, 1)[0].DeliveryID()
	b.waits(t, id, 2)
	way.cut()
	// Temporal makes the activity again and again, and the row isn't asked.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		d, err := b.app.Temporal.DescribeWorkflowExecution(t.Context(), id, "")
		require.NoError(c, err)
		require.Len(c, d.GetPendingActivities(), 1)
		require.Greater(c, d.GetPendingActivities()[0].GetAttempt(), int32(2))
	}, testkit.Wait, 20*time.Millisecond)
	way.mend()
	require.Len(t, b.delivery(t, "succeeded")["attempts"], 2)
	require.Len(t, b.receiver.All(), 2)
}
