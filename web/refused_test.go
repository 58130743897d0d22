package web_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/web"
	"earshot/web/pagecache"
)

// failingStore has a database that fails each connection with a secret error. It reports the first
// connection and waits with the failures until fail is called.
func failingStore(t *testing.T) (s *postgres.DB, asked <-chan struct{}, fail func()) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	first, may := make(chan struct{}), make(chan struct{})
	tell, permit := sync.OnceFunc(func() { close(first) }), sync.OnceFunc(func() { close(may) })
	t.Cleanup(permit)
	go func() {
		for c, err := listener.Accept(); err == nil; c, err = listener.Accept() {
			go func() {
				defer c.Close()
				backend := pgproto3.NewBackend(c, c)
				if _, err := backend.ReceiveStartupMessage(); err != nil {
					return
				}
				tell()
				<-may
				backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "XX000", Message: "password=secret"})
				_ = backend.Flush() // a client that left gets no answer
			}()
		}
	}()
	s, err = postgres.Open(postgres.Options{URL: "postgres://" + listener.Addr().String() + "/none?sslmode=disable"})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s, first, permit
}

func TestARefusedReaderIsToldWhenToRetry(t *testing.T) {
	t.Parallel()
	s, asked, fail := failingStore(t)
	var logged bytes.Buffer
	keys := access.New(s, change.NewRunner(s, nil, nil, change.Settings{}), slog.New(slog.DiscardHandler))
	pages, err := web.New(web.UseCases{Access: keys}, web.Options{
		Slots: 1, Wait: time.Nanosecond, Log: slog.New(slog.NewTextHandler(&logged, nil)),
		Network: func(*http.Request) netip.Prefix { return netip.Prefix{} },
	})
	require.NoError(t, err)
	read := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, path, nil))
		return w
	}
	failed := make(chan *httptest.ResponseRecorder, 1)
	go func() { failed <- read("/b/acme") }() // it holds the slot while the database does not answer
	<-asked
	refused := read("/b/other")
	require.Equal(t, http.StatusServiceUnavailable, refused.Code)
	require.NotEmpty(t, refused.Header().Get("Retry-After"))
	require.Contains(t, refused.Body.String(), "Too many readers")
	require.Contains(t, logged.String(), pagecache.ErrBusy.Error())

	fail()
	w := <-failed
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.NotContains(t, w.Body.String(), "secret")
	require.Contains(t, logged.String(), "secret", "operators are told")
}
