package api

import (
	"bytes"
	"context"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"

	"earshot/internal/change"
	"earshot/internal/memory"
	"earshot/internal/problem"
)

// Another surface, such as the agent tools, is mounted beside the operations. Its requests are
// named, logged, authorized and counted like theirs. It runs operations through their own handlers
// in this process, so each rule exists once. A ToolCall has the cost and the memory of such a run.

// SurfaceRequest is the permission of a request to a surface: its key, and the token that it has cost.
type SurfaceRequest struct {
	server    *server
	engine    *gin.Engine
	requestID string
	caller    *change.Caller

	mu sync.Mutex
	// spent is true once a call has used the token. Further calls cost tokens of their own.
	spent bool
	// releases free the memory that the answers of calls have reserved.
	releases map[*ToolCall]func()
	// answered is true once the request's answer is written.
	answered bool
}

// MayWrite reports whether the key has the scope read:write.
func (g *SurfaceRequest) MayWrite() bool { return g.caller.CanWrite() }

// ToolCall is one call of a tool. It runs an operation, and may run it again for a smaller part of the
// result.
type ToolCall struct {
	grant *SurfaceRequest
	tool  string
	// paid is true if the next run costs no token.
	paid bool
}

// Call begins a call of a tool. The tool's name is for the log.
func (g *SurfaceRequest) Call(tool string) *ToolCall {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := &ToolCall{grant: g, tool: tool, paid: !g.spent}
	g.spent = true
	return c
}

// keep holds the memory of an answer until the request is answered. A further answer of the same
// call replaces the one before.
func (c *ToolCall) keep(over func()) {
	g := c.grant
	g.mu.Lock()
	defer g.mu.Unlock()
	if before := g.releases[c]; before != nil {
		before()
	}
	if g.answered { // the client has left, and end has already run
		over()
		return
	}
	g.releases[c] = over
}

func (g *SurfaceRequest) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answered = true
	for _, over := range g.releases {
		over()
	}
}

// Mount serves a surface at POST path. A request needs an API key and costs one token of its
// budget. Requests from pages of foreign origins are refused.
func (a *API) Mount(path string, surface func(http.ResponseWriter, *http.Request, *SurfaceRequest)) {
	a.engine.POST(path, a.server.checkOrigin, a.server.authorize, a.server.limit, func(c *gin.Context) {
		release, ok := a.server.reserveBody(c, maxMessage, memory.MessageCost)
		if !ok {
			return
		}
		defer release()
		caller, _ := callerOf(c)
		g := &SurfaceRequest{server: a.server, engine: a.engine, requestID: requestID(c), caller: caller, releases: map[*ToolCall]func(){}}
		defer g.end()
		surface(c.Writer, c.Request, g)
	})
}

// Decode runs fn, which decodes a part of the request with the given size in bytes. Large parts share
// the few slots of the API's own bodies.
func (g *SurfaceRequest) Decode(ctx context.Context, size int, fn func()) error {
	return g.server.decoding(ctx, size, fn)
}

// Answer is the answer of an operation.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Run runs an operation. The context is that of the request to the surface, or is derived from it.
// The target is the path with the query. The headers are those of the contract's parameters. The
// body is JSON or nil. The call's previous answer must not be used any more.
func (c *ToolCall) Run(ctx context.Context, method, target string, headers http.Header, body []byte) (*Answer, error) {
	r, err := http.NewRequestWithContext(context.WithValue(ctx, callKey{}, c), method, target, bytes.NewReader(body))
	if err != nil {
		return nil, problem.Invalid("", "format", "makes no request")
	}
	maps.Copy(r.Header, headers)
	r.Header.Set(requestIDHeader, c.grant.requestID)
	w := &recorder{Answer{Status: http.StatusOK, Header: http.Header{}}}
	c.keep(func() {}) // frees the memory of the previous answer
	c.grant.engine.ServeHTTP(w, r)
	c.paid = true
	return &w.Answer, nil
}

// recorder holds an answer in memory. Its size is bounded, because lists and resources are.
type recorder struct{ Answer }

func (w *recorder) Header() http.Header { return w.Answer.Header }

func (w *recorder) WriteHeader(status int) { w.Status = status }

func (w *recorder) Write(b []byte) (int, error) {
	w.Body = append(w.Body, b...)
	return len(b), nil
}

type callKey struct{}

// callOf returns the call that an operation runs for. It is nil for a request from the network.
func callOf(c *gin.Context) *ToolCall {
	call, _ := c.Request.Context().Value(callKey{}).(*ToolCall)
	return call
}

// checkOrigin refuses requests that a browser sends for a foreign page. With DNS rebinding, a
// foreign name leads to this machine, and the page's origin equals the host of the request. On a
// loopback address, only loopback names are therefore accepted. Programs send no origin; the key
// identifies them.
func (s *server) checkOrigin(c *gin.Context) {
	origin := c.GetHeader("Origin")
	if origin == "" {
		return
	}
	u, err := url.Parse(origin)
	local, _ := c.Request.Context().Value(http.LocalAddrContextKey).(net.Addr)
	foreign := err != nil || u.Host == "" || !strings.EqualFold(u.Host, c.Request.Host)
	if foreign || (local != nil && isLoopback(local.String()) && !isLoopback(u.Host)) {
		s.refuse(c, problem.ForeignOrigin.Problem())
	}
}

// isLoopback takes a host with or without a port.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || (err == nil && ip.IsLoopback())
}
