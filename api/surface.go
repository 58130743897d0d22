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

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"

	"earshot/internal/change"
	"earshot/internal/memory"
	"earshot/internal/problem"
)

// Another surface, such as the agent tools, is mounted beside the operations: its
// requests are named, logged, authorized and counted like theirs. What it then
// asks for runs through the operations' own handlers in this process, so that no
// rule exists twice. What a run costs and holds stands in its Call.

// Grant is what a request to a surface may use: its key, and the token of the key's
// budget that it cost.
type Grant struct {
	engine    *gin.Engine
	requestID string
	caller    *change.Caller

	mu sync.Mutex
	// spent says that a call has the token. Further calls cost tokens of their own.
	spent bool
	// releases give back the memory that the answers of calls have reserved.
	releases map[*Call]func()
	// answered says that the request's answer was written.
	answered bool
}

// MayWrite reports whether the key has the scope read:write.
func (g *Grant) MayWrite() bool { return g.caller.CanWrite() }

// Call is one call of a tool: it runs an operation, and may run it again for less of
// the same.
type Call struct {
	grant *Grant
	tool  string
	// paid says that the next run costs no token.
	paid bool
}

// Call begins a call of a tool, whose name is for the log.
func (g *Grant) Call(tool string) *Call {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := &Call{grant: g, tool: tool, paid: !g.spent}
	g.spent = true
	return c
}

// keep holds what an answer has reserved until the request is answered. A further answer of the
// call takes the place of the one before.
func (c *Call) keep(over func()) {
	g := c.grant
	g.mu.Lock()
	defer g.mu.Unlock()
	if before := g.releases[c]; before != nil {
		before()
	}
	if g.answered { // whoever asked has left, and nobody else comes to give it back
		over()
		return
	}
	g.releases[c] = over
}

func (g *Grant) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answered = true
	for _, over := range g.releases {
		over()
	}
}

// Mount serves a surface at POST path. A request needs an API key and costs one
// token of its budget; pages of foreign origins are refused.
func (a *API) Mount(path string, surface func(http.ResponseWriter, *http.Request, *Grant)) {
	a.engine.POST(path, a.server.checkOrigin, a.server.authorize, a.server.limit, func(c *gin.Context) {
		release, ok := a.server.reserveBody(c, maxMessage, memory.MessageCost)
		if !ok {
			return
		}
		defer release()
		caller, _ := callerOf(c)
		g := &Grant{engine: a.engine, requestID: requestID(c), caller: caller, releases: map[*Call]func(){}}
		defer g.end()
		surface(c.Writer, c.Request, g)
	})
}

// Contract is api/openapi.yaml, which nobody may change.
func (a *API) Contract() *openapi3.T { return a.server.contract.Doc }

// Answer is what an operation answered.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Run runs an operation. Ctx is that of the request to the surface or comes from it;
// target is the path with its query, headers are those of the contract's parameters, body is
// JSON or nil. The answer before must not be used any more.
func (c *Call) Run(ctx context.Context, method, target string, headers http.Header, body []byte) (*Answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, problem.Invalid("", "format", "makes no request")
	}
	maps.Copy(r.Header, headers)
	r.Header.Set(requestIDHeader, c.grant.requestID)
	w := &recorder{Answer{Status: http.StatusOK, Header: http.Header{}}, c}
	c.keep(func() {}) // so two answers of a call never have memory reserved at once
	c.grant.engine.ServeHTTP(w, r)
	c.paid = true
	return &w.Answer, nil
}

// recorder keeps an answer in memory. Lists and resources are bounded.
type recorder struct {
	Answer
	call *Call
}

func (w *recorder) Header() http.Header { return w.Answer.Header }

func (w *recorder) WriteHeader(status int) { w.Status = status }

func (w *recorder) Write(b []byte) (int, error) {
	w.Body = append(w.Body, b...)
	return len(b), nil
}

// callOf is the call that an operation runs for; nil for a request that came over the
// network. A call's operation answers to a recorder, which nothing from outside does.
func callOf(c *gin.Context) *Call {
	for w := http.ResponseWriter(c.Writer); ; {
		if r, ok := w.(*recorder); ok {
			return r.call
		}
		wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil
		}
		w = wrapper.Unwrap()
	}
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
