package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

// logBook keeps the lines of a log.
type logBook struct{ *testkit.Logs }

// lines returns the lines of one request. It leaves out the limiter's warning, which comes before the
// others when the database of a busy machine takes longer than 100 ms.
func (b *logBook) lines(t *testing.T, requestID string) []object {
	t.Helper()
	var found []object
	for line := range strings.Lines(b.String()) {
		var l object
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		if l["requestId"] == requestID && l["msg"] != "a rate limit was kept without the database" {
			found = append(found, l)
		}
	}
	return found
}

// await waits for n lines of a request, because the last line is written after the answer.
func (b *logBook) await(t *testing.T, requestID string, n int) []object {
	t.Helper()
	require.Eventually(t, func() bool { return len(b.lines(t, requestID)) >= n }, testkit.Wait, time.Millisecond)
	return b.lines(t, requestID)
}

func startWithLog(t *testing.T) (*apptest.App, *logBook) {
	t.Helper()
	book := &logBook{testkit.NewLogs()}
	return apptest.Start(t, apptest.Options{Logs: book.Logger()}), book
}

func TestARequestLeavesOneLogLineWithItsCallerAndItsRoute(t *testing.T) {
	t.Parallel()
	app, book := startWithLog(t)
	n := newFixture(t, app)
	n.Make(t, http.MethodGet, "/v1/me", nil)
	a := n.Do(t, http.MethodPatch, "/v1/posts/"+n.ids["postId"], object{"status": "planned"}, "X-Request-Id", "the-one")
	require.Equal(t, http.StatusOK, a.Status)
	lines := book.await(t, "the-one", 1)
	require.Len(t, lines, 1)
	line := lines[0]
	require.Equal(t, "INFO", line["level"])
	require.Equal(t, "PATCH", line["method"])
	require.Equal(t, "/v1/posts/:postId", line["route"])
	require.EqualValues(t, 200, line["status"])
	require.EqualValues(t, len(a.Raw), line["bytes"])
	require.Positive(t, line["duration"])
	require.Equal(t, n.Organization.ID.String(), line["organizationId"])
	require.Regexp(t, "^key_", line["keyId"])
	require.Equal(t, n.ids["postId"], line["postId"])
}

func TestTheLogHoldsNoKeyNoBodyAndNoQuery(t *testing.T) {
	t.Parallel()
	app, book := startWithLog(t)
	n := newFixture(t, app)
	const secret = "correct-horse"
	requests := []struct {
		method, path string
		body         any
		header       []string
	}{
		{"POST", "/v1/contacts/identify", object{"externalUserId": secret, "email": secret + "@example.com"}, nil},
		{"POST", "/v1/contacts/identify", object{"externalUserId": secret, "email": secret}, nil},
		{"POST", "/v1/contacts/identify", `{"` + secret, nil},
		{"POST", "/v1/webhooks", object{"url": "https://example.com/" + secret + "?" + secret, "events": []string{"post.created"}}, nil},
		{"GET", "/v1/boards?cursor=" + secret, nil, nil},
		{"GET", "/v1/" + secret, nil, nil},
		{"GET", "/v1/posts/" + secret, nil, nil},
		{"GET", "/v1/me", nil, []string{"Authorization", "Bearer " + secret}},
		{"GET", "/v1/me", nil, []string{"Cookie", secret, "User-Agent", secret, "Referer", secret, "X-Forwarded-For", secret}},
	}
	for i, r := range requests {
		id := string(rune('a' + i))
		n.Do(t, r.method, r.path, r.body, append([]string{"X-Request-Id", id}, r.header...)...)
		require.Len(t, book.await(t, id, 1), 1, "%s %s", r.method, r.path)
	}
	require.NotContains(t, book.String(), secret)
	require.NotContains(t, book.String(), n.Key)
	require.NotContains(t, book.String(), n.ReadKey)
}

func TestTheLogLineOfANewPostNamesItAndItsDeliveries(t *testing.T) {
	t.Parallel()
	app, book := startWithLog(t)
	n := newFixture(t, app)
	n.Register(t, testkit.NewReceiver(t), "post.created")
	made := n.Do(t, http.MethodPost, "/v1/boards/"+n.ids["boardId"]+"/posts", object{"title": "Dark mode"}, "X-Request-Id", "the-one")
	require.Equal(t, http.StatusCreated, made.Status)
	line := book.await(t, "the-one", 1)[0]
	require.Equal(t, made.Data()["id"], line["postId"])
	require.Contains(t, fmt.Sprint(line["deliveryIds"]), "dlv_")
}
