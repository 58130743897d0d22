package api

import (
	"strings"

	"github.com/gin-gonic/gin"

	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/problem"
)

// authorize lets a request through if it carries a valid API key. The scope is checked later
// (checkScope).
func (s *server) authorize(c *gin.Context) {
	if call := callOf(c); call != nil {
		c.Set(callerKey, call.grant.caller) // the caller of the surface's request
		return
	}
	key, ok := bearer(c.GetHeader("Authorization"))
	if !ok {
		s.refuse(c, access.BadKey())
		return
	}
	caller, err := s.keys.Find(c.Request.Context(), key)
	if problem.Is(err, problem.Unauthorized) {
		s.refuseKey(c, err)
		return
	}
	if err != nil {
		s.refuse(c, err)
		return
	}
	c.Request = c.Request.WithContext(change.WithCaller(c.Request.Context(), caller))
	c.Set(callerKey, caller)
}

// checkScope refuses a write with a key that may only read. It runs after the rate limit, because
// every authenticated answer carries the rate limit's headers.
func (s *server) checkScope(c *gin.Context) {
	caller, _ := callerOf(c)
	if s.operation(c).Scope != "read" && !caller.CanWrite() {
		s.refuse(c, ReadsOnly())
	}
}

// ReadsOnly is the problem of a write with a key that may only read.
func ReadsOnly() *problem.Error {
	return problem.New(problem.ScopeInsufficient, "The API key lacks the scope read:write.").With("required", "read:write")
}

// bearer returns the credential of the header. The name of the scheme is case-insensitive (RFC
// 9110, section 11.1).
func bearer(header string) (string, bool) {
	scheme, key, ok := strings.Cut(header, " ")
	key = strings.TrimSpace(key)
	return key, ok && strings.EqualFold(scheme, "Bearer") && key != ""
}

const callerKey = "caller"

func callerOf(c *gin.Context) (*change.Caller, bool) {
	v, ok := c.Get(callerKey)
	if !ok {
		return nil, false
	}
	return v.(*change.Caller), true
}
