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

// Limits bound the time, memory and connections that clients can use.
type Limits struct {
	// Header is the time for a request's line and headers. Body is the time for the whole request.
	// Answer is the time after the headers: for the body, the work, and the client's reading. A
	// connection that takes longer is closed.
	Header, Body, Answer time.Duration
	// Idle is the time between two requests of a connection.
	Idle time.Duration
	// HeaderBytes is the limit for a request's line and headers together.
	HeaderBytes int
	// Connections is the maximum number of open connections. At this limit, a new connection
	// replaces one that has waited for its client for at least EvictAfter.
	Connections int
	EvictAfter  time.Duration
}

// StandardLimits returns the limits of the program.
func StandardLimits() Limits {
	return Limits{
		Header: 10 * time.Second,
		// Enough for the largest body over a slow line.
		Body: time.Minute,
		// Another minute for the answer.
		Answer: 2 * time.Minute,
		Idle:   2 * time.Minute,
		// The longest list of filters has about 25 KB, percent-encoded.
		HeaderBytes: 64 << 10,
		Connections: connectionLimit(),
		// Ten times as long as it takes to write an answer to a client that reads, on a busy
		// machine. A flood of connections can replace all of them at most once a second.
		EvictAfter: time.Second,
	}
}

// unlimited is the number of files for a process without a limit.
const unlimited = 1 << 20

// connectionLimit leaves half of the process's file descriptors to the database, Temporal and
// receivers. Go has already raised the limit as far as possible.
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

// NewServer makes a Server. Serve starts it.
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

// Serve accepts connections until Shutdown. It then returns http.ErrServerClosed.
func (s *Server) Serve(l net.Listener) error { return s.http.Serve(newLimitedListener(l, s.limits)) }

// Shutdown accepts no more requests and waits for those in progress until ctx ends. It then cuts
// off the rest, and their transactions roll back.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close()
		return errors.Wrap(err, "wait for requests")
	}
	return nil
}
