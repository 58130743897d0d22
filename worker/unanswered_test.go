package worker_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

// losing is a proxy to a database. When armed, it drops the answer to a commit and the connection,
// as if the server were killed right after the commit.
type losing struct{ armed atomic.Bool }

// committed is Postgres' answer to a commit.
var committed = []byte("COMMIT\x00")

func newLosing(t *testing.T, database string) (*losing, string) {
	t.Helper()
	u, err := url.Parse(database)
	require.NoError(t, err)
	server := u.Host
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	u.Host = listener.Addr().String()
	l := &losing{}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", server)
			if err != nil {
				_ = near.Close()
				continue
			}
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
			go l.answer(near, far)
		}
	}()
	return l, u.String()
}

func (l *losing) answer(near, far net.Conn) {
	defer func() { _ = near.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := far.Read(buffer)
		if bytes.Contains(buffer[:n], committed) && l.armed.CompareAndSwap(true, false) {
			return
		}
		if _, failed := near.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

// The events are sent with the commit, so nobody knows the deliveries of a commit without an answer.
func TestTheSweepSendsADeliveryWhoseCommitGotNoAnswer(t *testing.T) {
	t.Parallel()
	l, database := newLosing(t, testkit.Database(t))
	r := testkit.NewReceiver(t)
	app := apptest.Start(t, apptest.Options{DatabaseURL: database, Worker: true})
	n := app.Tenant(t)
	board := n.ID(t, "/v1/boards", map[string]any{"name": "Ideas"})
	n.Register(t, r, "post.created")
	l.armed.Store(true)
	answer := n.Do(t, http.MethodPost, "/v1/boards/"+board+"/posts", map[string]any{"title": "Dark mode"})
	require.Equal(t, http.StatusInternalServerError, answer.Status, "nobody knows whether it is there: %s", answer.Raw)
	// The schedule's own sweep may come first.
	sweep(t, app)
	require.Contains(t, string(r.Await(t, 1)[0].Body), "Dark mode")
}
