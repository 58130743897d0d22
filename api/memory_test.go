package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/api"
	"earshot/internal/memory"
	"earshot/internal/ratelimit"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
)

// large is a body of the maximum size.
var large = `{"title":"` + strings.Repeat("a", 1<<20-12) + `"}`

// One organization has room for 16 bodies of 1 MiB, and a tool's message counts as two. Other
// organizations still have room.
func TestLargeBodiesThatDripKeepSmallOnesFromNothing(t *testing.T) {
	tier.Slow(t, "waits for the timeout of reads")
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := newFixture(t, app)
	posts := "/v1/boards/" + n.ids["boardId"] + "/posts"
	require.Equal(t, http.StatusUnprocessableEntity, n.Do(t, http.MethodPost, posts, large).Status)
	head := " HTTP/1.1\r\nHost: a.example\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nAuthorization: Bearer " + n.Key + "\r\n"
	var dripping []*socket
	const ofThree = (2*memory.BodyCost + memory.MessageCost) << 20
	for i := range 3 * (memory.Bodies / 2) / ofThree {
		s := dial(t, app)
		switch i % 3 {
		case 0:
			s.send(t, "POST "+posts+head+"Content-Length: "+strconv.Itoa(len(large))+"\r\n\r\n")
		case 1:
			s.send(t, "POST "+posts+head+"Transfer-Encoding: chunked\r\n\r\n")
		default:
			s.send(t, "POST /mcp"+head+"Content-Length: "+strconv.Itoa(len(large))+"\r\n\r\n")
		}
		// The server sends this line when it begins to read.
		line, err := s.r.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "100 Continue")
		dripping = append(dripping, s)
	}
	for _, path := range []string{posts, "/mcp"} {
		requireUnavailable(t, path, n.Do(t, http.MethodPost, path, large))
	}
	n.ID(t, posts, object{"title": "Small"})
	other := app.Tenant(t)
	theirs := "/v1/boards/" + other.ID(t, "/v1/boards", object{"name": "Ideas"}) + "/posts"
	require.Equal(t, http.StatusUnprocessableEntity, other.Do(t, http.MethodPost, theirs, large).Status)
	require.Equal(t, http.StatusRequestEntityTooLarge, n.Do(t, http.MethodPost, posts, large+" ").Status)
	for _, s := range dripping {
		require.NoError(t, s.Close())
	}
	require.Eventually(t, func() bool {
		a, err := request(t.Context(), app, http.MethodPost, posts, n.Key, large)
		return err == nil && a.Status == http.StatusUnprocessableEntity
	}, testkit.Wait, pollInterval)
}

// unreadWriter is a client that doesn't read its answer until it is released.
type unreadWriter struct {
	*httptest.ResponseRecorder
	begun   chan int
	release chan struct{}
}

func (w *unreadWriter) Write(b []byte) (int, error) {
	w.begun <- w.Code
	<-w.release
	return w.ResponseRecorder.Write(b)
}

func TestAnswersThatAreNoPagesAreBoundedToo(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := newFixture(t, app)
	post := "/v1/posts/" + n.ID(t, "/v1/boards/"+n.ids["boardId"]+"/posts",
		object{"title": "Large", "body": object{"text": "x", "json": object{"x": strings.Repeat("a", 255<<10)}}})
	usual := "/v1/boards/" + n.ID(t, "/v1/boards", object{"name": "Usual"}) + "/posts"
	for i := range 40 {
		n.ID(t, usual, object{"title": fmt.Sprint("Idea ", i), "body": object{"text": strings.Repeat("a", 300), "json": nil}})
	}
	handler, err := api.New(app.UseCases, api.Options{RateLimits: ratelimit.NewKeys(app.Store, 10_000), Log: testkit.Log(t)})
	require.NoError(t, err)
	begun, release := make(chan int), make(chan struct{})
	var all sync.WaitGroup
	read := func(path string) int {
		w := &unreadWriter{httptest.NewRecorder(), begun, release}
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Authorization", "Bearer "+n.Key)
		all.Go(func() { handler.ServeHTTP(w, r) })
		return <-begun
	}
	unread := 0
	for read(post) == http.StatusOK {
		unread++
	}
	require.LessOrEqual(t, unread, memory.Answers/(3*255<<10), "the next was refused")
	require.Positive(t, unread)
	require.Equal(t, http.StatusOK, read(usual+"?limit=100"), "a page of the usual size always has room")
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodPatch, post, object{"title": "A change is answered"}).Status)
	close(release)
	all.Wait()
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, post, nil).Status)
}
