package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/memory"
)

// Limits are what a client may take of the server: time, memory and connections.
type Limits struct {
	// Header is for a request's line and headers, Body for the whole request, and
	// Answer for all that follows the headers: the body, the work, and a client that
	// reads. Who takes longer is cut off.
	Header, Body, Answer time.Duration
	// Idle is for a connection between two requests.
	Idle time.Duration
	// HeaderBytes bounds a request's line and headers together.
	HeaderBytes int
	// Connections may be open at once. Beyond it those that wait for their client are
	// closed, each when it has waited for EvictAfter.
	Connections int
	EvictAfter  time.Duration
}

// StandardLimits are those of the program.
func StandardLimits() Limits {
	return Limits{
		Header: 10 * time.Second,
		// The largest body over a slow line.
		Body: time.Minute,
		// As long again for the answer.
		Answer: 2 * time.Minute,
		Idle:   2 * time.Minute,
		// The longest list of filters has some 25 KB, percent-encoded.
		HeaderBytes: 64 << 10,
		Connections: connectionLimit(),
		// Ten times what an answer that the client reads takes to be written on a busy
		// machine; and a flood still gets no more than all the connections once a second.
		EvictAfter: time.Second,
	}
}

// unlimited is what a process may open where nobody limits it.
const unlimited = 1 << 20

// connectionLimit leaves half of what the process may open to the database,
// Temporal and receivers. (Go has raised the limit as far as it goes.)
func connectionLimit() int {
	files := uint64(unlimited)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil {
		files = min(files, limit.Cur)
	}
	return max(1, min(memory.MaxConnections, int(files/2)))
}

// Server serves a Handler within limits.
type Server struct {
	http   http.Server
	limits Limits
}

// NewServer makes one; Serve starts it.
func NewServer(h http.Handler, l Limits, log *slog.Logger) *Server {
	return &Server{limits: l, http: http.Server{
		Handler:           noteWork(h),
		ReadHeaderTimeout: l.Header, ReadTimeout: l.Body, WriteTimeout: l.Answer, IdleTimeout: l.Idle,
		MaxHeaderBytes: l.HeaderBytes,
		// OPTIONS * is a request like any other.
		DisableGeneralOptionsHandler: true,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}}
}

// Serve takes connections until Shutdown or Close; then it returns
// http.ErrServerClosed.
func (s *Server) Serve(l net.Listener) error { return s.http.Serve(newLimitedListener(l, s.limits)) }

// Shutdown takes no more requests and waits for those under way until ctx ends.
// The others are cut off then: their transactions roll back.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close()
		return errors.Wrap(err, "wait for requests")
	}
	return nil
}
