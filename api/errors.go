package api

import (
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/gin-gonic/gin"
	"github.com/go-faster/errors"

	"earshot/internal/change"
	"earshot/internal/problem"
)

// statuses is the only place that decides the HTTP status of a problem.
var statuses = map[problem.Code]int{
	problem.Unauthorized:      http.StatusUnauthorized,
	problem.PlanLimit:         http.StatusPaymentRequired,
	problem.ScopeInsufficient: http.StatusForbidden,
	problem.Forbidden:         http.StatusForbidden,
	problem.NotFound:          http.StatusNotFound,
	problem.MethodNotAllowed:  http.StatusMethodNotAllowed,
	problem.Conflict:          http.StatusConflict,
	problem.PayloadTooLarge:   http.StatusRequestEntityTooLarge,
	problem.UnsupportedMedia:  http.StatusUnsupportedMediaType,
	problem.Validation:        http.StatusUnprocessableEntity,
	problem.RateLimited:       http.StatusTooManyRequests,

	problem.IdempotencyInProgress: http.StatusConflict,
	problem.IdempotencyMismatch:   http.StatusUnprocessableEntity,
	problem.Gone:                  http.StatusGone,
	problem.PreconditionFailed:    http.StatusPreconditionFailed,

	problem.Unavailable: http.StatusServiceUnavailable,
	problem.Internal:    http.StatusInternalServerError,
}

// retryAfter has the seconds of Retry-After for answers that don't set it themselves.
var retryAfter = map[problem.Code]string{
	problem.RateLimited: "1", // changes wait for each other, and most are short
	problem.Unavailable: "5", // the database has already been blocked for that long

	problem.IdempotencyInProgress: "1", // a change takes milliseconds
}

type errorAnswer struct {
	Error errorBody `json:"error"`
}

type errorBody struct {
	Code    problem.Code   `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// refuse ends a request with an error in the specified envelope. It logs a fault of the service,
// and the caller then gets only the request's id.
func (s *server) refuse(c *gin.Context, err error) {
	var replayed *change.ReplayedError
	if errors.As(err, &replayed) {
		s.replay(c, replayed.Answer)
		return
	}
	s.answer(c, s.problemOf(c, err))
}

// problemOf returns the problem that the caller gets for an error.
func (s *server) problemOf(c *gin.Context, err error) *problem.Error {
	p, ok := problem.As(err)
	switch {
	case ok:
	case c.Request.Context().Err() != nil:
		// The caller left or the server is stopping, so the answer won't be read.
		p = s.internal(c)
		s.log.InfoContext(c, "request was given up", "error", err, "requestId", requestID(c))
	case change.Unavailable(err):
		p = problem.New(problem.Unavailable, "The service is too busy with something else; try again later.")
		s.log.WarnContext(c, "request waited too long", "error", err, "requestId", requestID(c),
			"route", c.FullPath())
	default:
		p = s.internal(c)
		s.log.ErrorContext(c, "request failed", "error", err, "requestId", requestID(c),
			"route", c.FullPath())
	}
	return p
}

// undecoded answers a request that the contract allows but the generated code can't decode. The two
// disagree, which is a fault of the service.
func (s *server) undecoded(c *gin.Context, err error) {
	s.log.ErrorContext(c, "request could not be decoded", "error", err, "requestId", requestID(c), "route", c.FullPath())
	s.refuse(c, problem.Invalid("", "type", "the request can't be decoded"))
}

// recovered answers a panic like any other fault of the service.
func (s *server) recovered(c *gin.Context, what any) {
	s.log.ErrorContext(c, "request panicked", "error", fmt.Sprint(what), "stack", string(debug.Stack()),
		"requestId", requestID(c), "route", c.FullPath())
	s.answer(c, s.internal(c))
}

func (s *server) answer(c *gin.Context, p *problem.Error) {
	if p.Code == problem.Unauthorized {
		c.Header("WWW-Authenticate", "Bearer")
	}
	if wait, ok := retryAfter[p.Code]; ok && c.Writer.Header().Get("Retry-After") == "" {
		c.Header("Retry-After", wait)
	}
	c.AbortWithStatusJSON(statuses[p.Code], errorAnswer{errorBody{p.Code, p.Message, p.Details}})
}

func (s *server) internal(c *gin.Context) *problem.Error {
	return problem.New(problem.Internal, "Something went wrong on our side.").With("requestId", requestID(c))
}
