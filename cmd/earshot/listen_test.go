package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/webhook"
)

const (
	testSecret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	otherSecret = "whsec_00000000000000000000000000000000"
)

// deliver posts a delivery like the service and returns the status.
func deliver(t *testing.T, url, secret, id string) int {
	t.Helper()
	body := []byte(`{"event":"vote.created","n":1}`)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set(webhook.HeaderEvent, "vote.created")
	request.Header.Set(webhook.HeaderDelivery, id)
	request.Header.Set(webhook.HeaderSignature, webhook.Sign(secret, time.Now(), body))
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	return response.StatusCode
}

func serveReceiver(t *testing.T, o listenOptions) (url string, out *bytes.Buffer) {
	t.Helper()
	out = &bytes.Buffer{}
	server := httptest.NewServer(newReceiver(o, out))
	t.Cleanup(server.Close)
	return server.URL, out
}

func TestListenShowsAGenuineDeliveryAndAcceptsIt(t *testing.T) {
	t.Parallel()
	url, out := serveReceiver(t, listenOptions{secrets: []string{otherSecret, testSecret}})
	require.Equal(t, http.StatusOK, deliver(t, url, testSecret, "dlv_1"))
	require.Regexp(t, `^\d\d:\d\d:\d\d\.\d{3}  vote\.created +dlv_1 +attempt 1  signature valid  answered 200\n$`, out.String())
}

func TestListenRefusesAWrongSignatureAndShowsIt(t *testing.T) {
	t.Parallel()
	url, out := serveReceiver(t, listenOptions{secrets: []string{testSecret}, failFirst: 1})
	require.Equal(t, http.StatusBadRequest, deliver(t, url, otherSecret, "dlv_1"))
	require.Contains(t, out.String(), "signature INVALID  answered 400 (webhook: no signature matches)")
}

func TestListenWithoutASecretAcceptsAndSaysThatItDidNotCheck(t *testing.T) {
	t.Parallel()
	url, out := serveReceiver(t, listenOptions{})
	require.Equal(t, http.StatusOK, deliver(t, url, testSecret, "dlv_1"))
	require.Contains(t, out.String(), "signature not checked  answered 200")
}

func TestListenReadsTheSecretFileAtEachRequest(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	url, out := serveReceiver(t, listenOptions{secretFile: file})
	require.Equal(t, http.StatusInternalServerError, deliver(t, url, testSecret, "dlv_1"))
	require.Contains(t, out.String(), "the secret file can't be read")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Equal(t, http.StatusInternalServerError, deliver(t, url, testSecret, "dlv_1"))
	require.NoError(t, os.WriteFile(file, []byte(testSecret+"\n"), 0o600))
	require.Equal(t, http.StatusOK, deliver(t, url, testSecret, "dlv_1"))
	require.Contains(t, out.String(), "attempt 3  signature valid  answered 200")
}

func TestListenFailsTheFirstRequestsAndCountsAttempts(t *testing.T) {
	t.Parallel()
	url, out := serveReceiver(t, listenOptions{secrets: []string{testSecret}, failFirst: 2, asJSON: true, payload: true})
	var statuses []int
	for _, id := range []string{"dlv_1", "dlv_1", "dlv_1", "dlv_2"} {
		statuses = append(statuses, deliver(t, url, testSecret, id))
	}
	require.Equal(t, []int{500, 500, 200, 200}, statuses)
	var shown []received
	for decoder := json.NewDecoder(out); decoder.More(); {
		var d received
		require.NoError(t, decoder.Decode(&d))
		shown = append(shown, d)
	}
	require.Len(t, shown, 4)
	require.Equal(t, "asked to fail, 2 of 2", shown[1].Reason)
	require.Equal(t, 3, shown[2].Seen)
	require.Equal(t, 1, shown[3].Seen)
	require.Equal(t, signatureValid, shown[0].Signature)
	require.JSONEq(t, `{"event":"vote.created","n":1}`, string(shown[3].Payload))
}

func TestListenPrintsPayloadsOnRequest(t *testing.T) {
	t.Parallel()
	url, out := serveReceiver(t, listenOptions{payload: true})
	deliver(t, url, testSecret, "dlv_1")
	require.Contains(t, out.String(), "\n  {\n    \"event\": \"vote.created\",\n    \"n\": 1\n  }\n")
}

func TestListenTakesPostsOnly(t *testing.T) {
	t.Parallel()
	url, out := serveReceiver(t, listenOptions{})
	response, err := http.Get(url) //nolint:noctx // the test's own server
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusMethodNotAllowed, response.StatusCode)
	require.Empty(t, out.String())
}

// startListen runs listen like the command and returns its URL.
func startListen(ctx context.Context, t *testing.T, o listenOptions) (url string, ended <-chan error) {
	t.Helper()
	reader, writer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- listen(ctx, o, io.Discard, writer)
		_ = writer.Close()
	}()
	lines := bufio.NewScanner(reader)
	for url == "" && lines.Scan() {
		url = regexp.MustCompile(`http://\S+`).FindString(lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	require.NotEmpty(t, url)
	return url, done
}

func TestListenEndsAfterTheCountOfAcceptedDeliveries(t *testing.T) {
	t.Parallel()
	url, ended := startListen(t.Context(), t, listenOptions{host: "127.0.0.1", secrets: []string{testSecret}, count: 2, timeout: time.Minute})
	require.Equal(t, http.StatusOK, deliver(t, url, testSecret, "dlv_1"))
	require.Equal(t, http.StatusOK, deliver(t, url, testSecret, "dlv_1"), "a repetition, which doesn't count")
	require.Equal(t, http.StatusBadRequest, deliver(t, url, otherSecret, "dlv_2"))
	require.Empty(t, ended)
	require.Equal(t, http.StatusOK, deliver(t, url, testSecret, "dlv_2"))
	require.NoError(t, <-ended)
}

func TestListenThatRunsOutOfTimeBeforeTheCountIsAnError(t *testing.T) {
	t.Parallel()
	_, ended := startListen(t.Context(), t, listenOptions{host: "127.0.0.1", count: 2, timeout: time.Millisecond})
	require.ErrorContains(t, <-ended, "0 of 2 deliveries arrived")
}

func TestListenWithoutACountEndsQuietly(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	_, ended := startListen(ctx, t, listenOptions{host: "127.0.0.1"})
	cancel()
	require.NoError(t, <-ended)
}

func TestADirectoryHasOneIDForAllListens(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "none", "yet")
	ids := make(chan string, 8)
	for range cap(ids) {
		go func() {
			id, err := listenOwner(dir, nil)
			if err != nil {
				id = err.Error()
			}
			ids <- id
		}()
	}
	first := <-ids
	require.Regexp(t, ownerForm, first)
	for range cap(ids) - 1 {
		require.Equal(t, first, <-ids)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1, "the other writers left no file")
	other, err := listenOwner(t.TempDir(), nil)
	require.NoError(t, err)
	require.NotEqual(t, first, other)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "listen-id"), nil, 0o600))
	_, err = listenOwner(dir, nil)
	require.ErrorContains(t, err, "remove it")
}

func TestListenCleansUpOnlyWebhooksOfThisMachine(t *testing.T) {
	t.Parallel()
	for host, here := range map[string]bool{
		"127.0.0.1": true, "127.8.9.1": true, "::1": true, "192.0.2.1": false, "example.com": false, "localhost": false, "": false,
	} {
		require.Equal(t, here, onThisMachine(host), host)
	}
}

func TestListenMovesFromATakenDefaultPortOnly(t *testing.T) {
	t.Parallel()
	taken := takenPort(t)
	var said strings.Builder
	listener, err := bind(listenOptions{host: "127.0.0.1", port: taken}, &said)
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	require.Contains(t, said.String(), "is taken, another one is used")

	_, err = bind(listenOptions{host: "127.0.0.1", port: taken, portChosen: true}, &said)
	require.ErrorContains(t, err, "is taken: choose another with --port")
}

// takenPort returns a port with a listener that stays open until the test ends.
func takenPort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().(*net.TCPAddr).Port
}
