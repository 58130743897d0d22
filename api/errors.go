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

// retryAfter are seconds, where nobody has said how many.
var retryAfter = map[problem.Code]string{
	problem.RateLimited: "1", // changes wait for each other, and mostly end at once
	problem.Unavailable: "5", // the database has stood still for as long already

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

// refuse ends a request with an error in the specified envelope. What isn't a
// problem of the caller is logged, and the caller learns the request's id only.
func (s *server) refuse(c *gin.Context, err error) {
	var replayed *change.ReplayedError
	if errors.As(err, &replayed) {
		s.replay(c, replayed.Answer)
		return
	}
	s.answer(c, s.problemOf(c, err))
}

// problemOf is what a caller is told of an error.
func (s *server) problemOf(c *gin.Context, err error) *problem.Error {
	p, ok := problem.As(err)
	switch {
	case ok:
	case c.Request.Context().Err() != nil:
		// The caller left, or the server stops: nobody reads the answer.
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

// undecoded answers what the contract takes and the generated code doesn't: the two
// disagree, which is ours to mend.
func (s *server) undecoded(c *gin.Context, err error) {
	s.log.ErrorContext(c, "request could not be decoded", "error", err, "requestId", requestID(c), "route", c.FullPath())
	s.refuse(c, problem.Invalid("", "type", "the request can't be decoded"))
}

// recovered answers a panic like any other fault of ours.
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
