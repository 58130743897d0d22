package api_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

// errDeadline means that the server left the connection open.
var errDeadline = os.ErrDeadlineExceeded

// socket is a connection to the API on which a test writes the bytes itself.
type socket struct {
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, app *apptest.App) *socket {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(app.URL, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(testkit.Wait)))
	return &socket{c, bufio.NewReader(c)}
}

func (s *socket) send(t *testing.T, text string) {
	t.Helper()
	_, err := io.WriteString(s, text)
	require.NoError(t, err)
}

// drip sends a byte at intervals until the connection or the test ends.
func (s *socket) drip(t *testing.T) {
	t.Helper()
	var all sync.WaitGroup
	all.Go(func() {
		next := time.NewTicker(brief / 4)
		defer next.Stop()
		for err := error(nil); err == nil; _, err = s.Write([]byte("a")) {
			<-next.C
		}
	})
	t.Cleanup(func() {
		_ = s.Close()
		all.Wait()
	})
}

// answer reads the next answer and returns its status.
func (s *socket) answer(t *testing.T) int {
	t.Helper()
	a, err := http.ReadResponse(s.r, nil)
	require.NoError(t, err)
	defer a.Body.Close()
	_, err = io.Copy(io.Discard, a.Body)
	require.NoError(t, err)
	return a.StatusCode
}

// requireClosed requires that the server closes the connection without an answer.
func (s *socket) requireClosed(t *testing.T) {
	t.Helper()
	rest, err := io.ReadAll(s.r)
	require.NotErrorIs(t, err, errDeadline)
	require.Empty(t, string(rest))
}

// answers reads until the server closes the connection. It returns the statuses of all answers, and
// their text.
func (s *socket) answers(t *testing.T) (statuses []int, text string) {
	t.Helper()
	raw, err := io.ReadAll(s.r)
	require.NotErrorIs(t, err, errDeadline)
	r := bufio.NewReader(strings.NewReader(string(raw)))
	for {
		a, err := http.ReadResponse(r, nil) //nolint:bodyclose // of a text
		if err != nil {
			require.Zero(t, r.Buffered(), "%s", raw)
			return statuses, string(raw)
		}
		_, err = io.Copy(io.Discard, a.Body)
		require.NoError(t, err, "%s", raw)
		statuses = append(statuses, a.StatusCode)
	}
}
