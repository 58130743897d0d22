package testkit

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"testing"

	"earshot/internal/telemetry"
)

// Log returns a logger that writes to the test's output, which is shown if the test fails. Lines
// after the test's end, for example from a connection that closes late, are dropped, because the
// testing package would panic.
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

// Logs collects log lines for tests of the log.
type Logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// NewLogs returns an empty Logs.
func NewLogs() *Logs { return &Logs{} }

// Logger returns a logger that writes JSON lines of every level.
func (l *Logs) Logger() *slog.Logger {
	return slog.New(telemetry.TracedLogs(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

// Warnings returns a logger that writes warnings and errors as text.
func (l *Logs) Warnings() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// Write appends.
func (l *Logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns all lines so far.
func (l *Logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
