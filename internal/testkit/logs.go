package testkit

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"testing"

	"earshot/internal/telemetry"
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

// Logs keeps log lines for a test about them.
type Logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// NewLogs makes an empty one.
func NewLogs() *Logs { return &Logs{} }

// Logger writes JSON lines of every level into it.
func (l *Logs) Logger() *slog.Logger {
	return slog.New(telemetry.TracedLogs(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

// Warnings writes lines of text into it, of warnings and errors.
func (l *Logs) Warnings() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// Write appends.
func (l *Logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is everything so far.
func (l *Logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
