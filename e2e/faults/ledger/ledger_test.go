package ledger_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/e2e/faults/ledger"
)

func create(t *testing.T) (*ledger.Writer, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	w, err := ledger.Create(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w, path
}

func readAll(t *testing.T, path string) (entries []ledger.Entry) {
	t.Helper()
	for e, err := range ledger.Read(path) {
		require.NoError(t, err)
		entries = append(entries, e)
	}
	return entries
}

func TestLedgerEntriesAreReadInTheOrderOfWriting(t *testing.T) {
	t.Parallel()
	w, path := create(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	written := []ledger.Entry{
		{
			At: at, Kind: ledger.Arrived, Request: 1, Endpoint: "a", Delivery: "dlv_1", Event: "post.created",
			Sum: "00ff", Subject: "pst_1", Signed: true,
		},
		{At: at.Add(1), Kind: ledger.Answered, Request: 1, Status: 200},
		{At: at.Add(2), Kind: ledger.Broken, Request: 2},
	}
	for _, e := range written {
		require.NoError(t, w.Append(e))
	}
	require.Equal(t, written, readAll(t, path))
}

func TestLinesOfManyGoroutinesDoNotMix(t *testing.T) {
	t.Parallel()
	w, path := create(t)
	const writers, each = 16, 200
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for n := range each {
				if err := w.Append(ledger.Entry{Request: int64(n), Endpoint: fmt.Sprint(i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	following := map[string]int64{}
	for _, e := range readAll(t, path) {
		require.Equal(t, following[e.Endpoint], e.Request)
		following[e.Endpoint]++
	}
	require.Len(t, following, writers)
}

func TestALedgerIsNeverBegunAnew(t *testing.T) {
	t.Parallel()
	_, path := create(t)
	_, err := ledger.Create(path)
	require.ErrorIs(t, err, os.ErrExist)
}

func TestALineThatIsCutOffIsAnError(t *testing.T) {
	t.Parallel()
	w, path := create(t)
	require.NoError(t, w.Append(ledger.Entry{Request: 1}))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"request":2`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	var read []int64
	for e, got := range ledger.Read(path) {
		read, err = append(read, e.Request), got
	}
	require.Equal(t, []int64{1, 0}, read)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, "line 2")
}
