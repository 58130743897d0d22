package api_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
)

// About 10 MB of rows are more than a page and the buffers of sockets. The memory has room for ten
// such pages.
func TestUnreadResponsesTakeABoundedPartOfTheMemory(t *testing.T) {
	tier.Slow(t, "waits for the timeout of writes")
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := newFixture(t, app)
	board := "/v1/boards/" + n.ids["boardId"]
	large := object{"text": "x", "json": object{"x": strings.Repeat("a", 255<<10)}}
	for range largeRows {
		n.ID(t, board+"/posts", object{"title": "Large", "body": large})
	}
	path := board + "/posts?limit=100"
	var unread []*socket
	for range 10 {
		s := dial(t, app)
		require.NoError(t, s.Conn.(*net.TCPConn).SetReadBuffer(4<<10))
		s.send(t, "GET "+path+" HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer "+n.Key+"\r\n\r\n")
		_, err := s.r.Peek(1)
		require.NoError(t, err)
		unread = append(unread, s)
	}
	a := n.Do(t, http.MethodGet, path, nil)
	require.Equal(t, http.StatusTooManyRequests, a.Status)
	require.Equal(t, "1", a.Header.Get("Retry-After"))
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, "/v1/boards", nil).Status)
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, "/v1/posts/"+n.ids["postId"]+"/comments", nil).Status,
		"rows that aren't large have room")
	for _, s := range unread {
		require.NoError(t, s.Close())
	}
	require.Eventually(t, func() bool {
		a, err := request(t.Context(), app, http.MethodGet, path, n.Key, "")
		return err == nil && a.Status == http.StatusOK
	}, testkit.Wait, pollInterval)
}
