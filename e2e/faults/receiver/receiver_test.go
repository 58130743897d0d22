package receiver_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/e2e/faults/ledger"
	"earshot/e2e/faults/receiver"
	"earshot/webhook"
)

const (
	// wait bounds what must happen. A busy machine may take seconds for what otherwise takes milliseconds.
	wait   = time.Minute
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	body   = `{"event":"comment.created","comment":{"id":"cmt_1","postId":"pst_1"}}`
)

// bench is a receiver behind a real socket.
type bench struct {
	*receiver.Receiver
	t    *testing.T
	url  string
	path string
}

func newBench(t *testing.T, behaviour receiver.Behaviour) *bench {
	t.Helper()
	b := &bench{t: t, path: filepath.Join(t.TempDir(), "ledger.jsonl")}
	l, err := ledger.Create(b.path)
	require.NoError(t, err)
	b.Receiver = receiver.New(l)
	b.Add(receiver.Endpoint{Name: "a", Secret: secret, Behaviour: behaviour})
	server := httptest.NewServer(b)
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, b.Err())
		require.NoError(t, l.Close())
	})
	b.url = server.URL + receiver.Prefix
	return b
}

// request is a delivery as the service sends it.
func (b *bench) request(ctx context.Context, name, delivery string) *http.Request {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+name, strings.NewReader(body))
	require.NoError(b.t, err)
	q.Header.Set(webhook.HeaderEvent, "comment.created")
	q.Header.Set(webhook.HeaderDelivery, delivery)
	q.Header.Set(webhook.HeaderSignature, webhook.Sign(secret, time.Now(), []byte(body)))
	return q
}

// send returns the answer's status, or 0 if there is no answer.
func (b *bench) send(q *http.Request) int {
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0
	}
	require.NoError(b.t, answer.Body.Close())
	return answer.StatusCode
}

// entries returns the ledger's entries when it has at least n.
func (b *bench) entries(n int) (found []ledger.Entry) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		found = nil
		for e, err := range ledger.Read(b.path) {
			require.NoError(b.t, err)
			found = append(found, e)
		}
		return len(found) >= n
	}, wait, time.Millisecond)
	require.Len(b.t, found, n)
	return found
}

func TestARequestIsWrittenDownWhenItArrivesAndWhenItIsAnswered(t *testing.T) {
	t.Parallel()
	b := newBench(t, receiver.Healthy)
	require.Equal(t, http.StatusOK, b.send(b.request(t.Context(), "a", "dlv_1")))
	got := b.entries(2)
	sum := sha256.Sum256([]byte(body))
	want := ledger.Entry{
		At: got[0].At, Kind: ledger.Arrived, Request: 1, Endpoint: "a", Delivery: "dlv_1", Event: "comment.created",
		Sum: hex.EncodeToString(sum[:]), Subject: "cmt_1", Signed: true,
	}
	require.Equal(t, want, got[0])
	want.At, want.Kind, want.Status = got[1].At, ledger.Answered, http.StatusOK
	require.Equal(t, want, got[1])
	require.False(t, got[1].At.Before(got[0].At))
}

func TestASignatureThatDoesNotCheckIsWrittenDownAsSuch(t *testing.T) {
	t.Parallel()
	for name, signature := range map[string][]string{
		"none":           nil,
		"two":            {webhook.Sign(secret, time.Now(), []byte(body)), webhook.Sign(secret, time.Now(), []byte(body))},
		"another body":   {webhook.Sign(secret, time.Now(), []byte(body+" "))},
		"another secret": {webhook.Sign(secret+"x", time.Now(), []byte(body))},
		"an old one":     {webhook.Sign(secret, time.Now().Add(-time.Hour), []byte(body))},
		"half of one":    {"t=" + strconv.FormatInt(time.Now().Unix(), 10)},
		"upper case":     {strings.ToUpper(webhook.Sign(secret, time.Now(), []byte(body)))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, receiver.Healthy)
			q := b.request(t.Context(), "a", "dlv_1")
			q.Header[webhook.HeaderSignature] = signature
			require.Equal(t, http.StatusOK, b.send(q))
			require.False(t, b.entries(2)[0].Signed)
		})
	}
}

func TestTheLedgerRecordsARequestToAnUnknownEndpoint(t *testing.T) {
	t.Parallel()
	b := newBench(t, receiver.Healthy)
	require.Equal(t, http.StatusNotFound, b.send(b.request(t.Context(), "b", "dlv_1")))
	got := b.entries(2)
	require.Equal(t, "b", got[0].Endpoint)
	require.False(t, got[0].Signed)
	require.Equal(t, http.StatusNotFound, got[1].Status)
}

func TestARequestThatIsCutOffIsBroken(t *testing.T) {
	t.Parallel()
	b := newBench(t, receiver.Healthy)
	c, err := net.Dial("tcp", strings.Split(b.url, "/")[2])
	require.NoError(t, err)
	_, err = c.Write([]byte("POST /hook/a HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n" + body))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Equal(t, ledger.Broken, b.entries(1)[0].Kind)
}

func TestManyRequestsAtOnceHaveTwoEntriesEach(t *testing.T) {
	t.Parallel()
	b := newBench(t, receiver.Flaky)
	const clients, each = 8, 50
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for n := range each {
				b.send(b.request(t.Context(), "a", "dlv_"+strconv.Itoa(i*each+n)))
			}
		})
	}
	all.Wait()
	kinds := map[ledger.Kind]map[int64]bool{ledger.Arrived: {}, ledger.Answered: {}}
	for _, e := range b.entries(2 * clients * each) {
		kinds[e.Kind][e.Request] = true
	}
	require.Len(t, kinds[ledger.Arrived], clients*each)
	require.Equal(t, kinds[ledger.Arrived], kinds[ledger.Answered])
}
