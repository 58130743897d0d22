package testkit

import (
	"io"
	"log/slog"
	"sync"
	"testing"
)

// Log writes into the test's output, which is shown when it fails. What
// comes after the test's end, from a connection that closes late, is dropped:
// the testing package would panic.
func Log(t testing.TB) *slog.Logger {
	w := &testWriter{to: t.Output()}
	t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.to = io.Discard
	})
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type testWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *testWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}
