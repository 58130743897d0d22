package api

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"earshot/internal/feedback"
	"earshot/internal/problem"
)

// Another surface, such as the agent tools, is mounted beside the operations: its
// requests are named, logged, authorized and counted like theirs. What it then
// asks for runs through the operations' own handlers in this process, so that no
// rule exists twice.

// passage is what a request to a surface hands on to the operations that it runs.
// It stands in the context, where nobody can put it from outside.
type passage struct {
	requestID string
	caller    *feedback.Caller
	// spent says that the token that the request cost was used by an operation.
	// What else it runs costs tokens of its own.
	spent atomic.Bool
	// free says that operations cost nothing: they belong to one that was paid.
	free bool
	// tool is the one that runs an operation, for the log.
	tool string
}

type passageKey struct{}

func passageOf(ctx context.Context) *passage {
	p, _ := ctx.Value(passageKey{}).(*passage)
	return p
}

// MayWrite reports whether the key of a request to a surface has the scope
// read:write.
func MayWrite(ctx context.Context) bool {
	p := passageOf(ctx)
	return p != nil && p.caller.CanWrite()
}

// Again is a context in which Run costs nothing, to ask once more for less of what
// was asked for already.
func Again(ctx context.Context) context.Context {
	p := passageOf(ctx)
	if p == nil {
		return ctx
	}
	return context.WithValue(ctx, passageKey{}, &passage{requestID: p.requestID, caller: p.caller, free: true})
}

// Mount serves a surface at POST path. A request needs an API key and costs one
// token of its budget; pages of foreign origins are refused.
func (a *API) Mount(path string, surface http.Handler) {
	a.engine.POST(path, a.server.checkOrigin, a.server.authorize, a.server.limit, func(c *gin.Context) {
		release, ok := a.server.reserveBody(c, maxMessage)
		if !ok {
			return
		}
		defer release()
		caller, _ := callerOf(c)
		p := &passage{requestID: requestID(c), caller: caller}
		surface.ServeHTTP(c.Writer, c.Request.WithContext(context.WithValue(c.Request.Context(), passageKey{}, p)))
	})
}

// Contract is api/openapi.yaml as JSON.
func (a *API) Contract() []byte { return a.server.contract.json }

// Answer is what an operation answered.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Run runs an operation for a tool. Ctx is that of the request to the surface or
// comes from it; target is the path with its query, body is JSON or nil.
func (a *API) Run(ctx context.Context, tool, method, target string, body []byte) (*Answer, error) {
	outer := passageOf(ctx)
	if outer == nil {
		return nil, problem.New(problem.Unauthorized, "The API key is missing or not valid.")
	}
	// The request's token is handed on; once it is used there is none to share.
	inner := &passage{requestID: outer.requestID, caller: outer.caller, tool: tool}
	inner.spent.Store(!outer.free && !outer.spent.CompareAndSwap(false, true))
	r, err := http.NewRequestWithContext(context.WithValue(ctx, passageKey{}, inner), method, target, bytes.NewReader(body))
	if err != nil {
		return nil, problem.Invalid("", "format", "makes no request")
	}
	r.Header.Set(requestIDHeader, outer.requestID)
	w := &recorder{Answer{Status: http.StatusOK, Header: http.Header{}}}
	a.engine.ServeHTTP(w, r)
	return &w.answer, nil
}

// recorder keeps an answer in memory. Lists and resources are bounded.
type recorder struct{ answer Answer }

func (w *recorder) Header() http.Header { return w.answer.Header }

func (w *recorder) WriteHeader(status int) { w.answer.Status = status }

func (w *recorder) Write(b []byte) (int, error) {
	w.answer.Body = append(w.answer.Body, b...)
	return len(b), nil
}

// checkOrigin refuses what a browser sends for a page that isn't ours. A page that
// had its own name lead to this machine (DNS rebinding) has the origin that the
// request is addressed to, so on a loopback address only loopback names will do.
// Programs send no origin; the key is what they are known by.
func (s *server) checkOrigin(c *gin.Context) {
	origin := c.GetHeader("Origin")
	if origin == "" {
		return
	}
	u, err := url.Parse(origin)
	local, _ := c.Request.Context().Value(http.LocalAddrContextKey).(net.Addr)
	foreign := err != nil || u.Host == "" || !strings.EqualFold(u.Host, c.Request.Host)
	if foreign || (local != nil && isLoopback(local.String()) && !isLoopback(u.Host)) {
		s.refuse(c, problem.New(problem.Forbidden, "Pages of this origin may not use this service.").
			With("reason", "foreign_origin"))
	}
}

// isLoopback wants a host with or without a port.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || (err == nil && ip.IsLoopback())
}
