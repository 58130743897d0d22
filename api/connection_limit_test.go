package api_test

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/api"
	"earshot/internal/testkit"
)

const root = "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"

// serve serves h within limits. The channel over gets the error with which the server stops.
func serve(t *testing.T, l api.Limits, h http.HandlerFunc) (server *api.Server, address string, over <-chan error) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server = api.NewServer(h, l, slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Shutdown(t.Context()) }) // the context has ended, so all requests are cut off
	return server, listener.Addr().String(), ended
}

// call opens a connection and sends a request.
func call(t *testing.T, address, text string) *socket {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(testkit.Wait)))
	s := &socket{c, bufio.NewReader(c)}
	s.send(t, text)
	return s
}

// The end of an answer is written after the work is done. It must not be cut off then, although
// another connection waits for the place.
func TestAnswersGoOutWholeWhileNewConnectionsWaitForRoom(t *testing.T) {
	t.Parallel()
	l := api.StandardLimits()
	l.Connections = 2
	begun, release := make(chan struct{}), make(chan struct{})
	_, address, _ := serve(t, l, func(w http.ResponseWriter, _ *http.Request) {
		begun <- struct{}{}
		<-release
		_, _ = w.Write([]byte("ok"))
	})
	newcomers := []*socket{call(t, address, root), call(t, address, root)}
	for range 200 {
		working := newcomers
		newcomers = nil
		for range working {
			<-begun
			newcomers = append(newcomers, call(t, address, root))
		}
		for range working {
			release <- struct{}{}
		}
		for _, s := range working {
			require.Equal(t, http.StatusOK, s.answer(t))
		}
	}
	for range newcomers {
		<-begun
		release <- struct{}{}
	}
}

func TestAServerThatStopsLetsSlowClientsReadTheirAnswers(t *testing.T) {
	t.Parallel()
	// More than the buffers of sockets, so that the server is still writing.
	answer := bytes.Repeat([]byte("a"), 32<<20)
	server, address, over := serve(t, api.StandardLimits(), func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(answer)
	})
	s := call(t, address, root)
	_, err := s.r.Peek(1)
	require.NoError(t, err)
	stopped := make(chan error, 1)
	go func() { stopped <- server.Shutdown(t.Context()) }()
	require.ErrorIs(t, <-over, http.ErrServerClosed)
	a, err := http.ReadResponse(s.r, nil)
	require.NoError(t, err)
	defer a.Body.Close()
	n, err := io.Copy(io.Discard, a.Body)
	require.NoError(t, err)
	require.Equal(t, int64(len(answer)), n)
	require.NoError(t, <-stopped)
}
