package messages

import (
	"net/http"

	"earshot/internal/problem"
)

// Notice is a page about a refused action: its status, and the name of its texts.
type Notice struct {
	Status int
	Name   string
}

// notices are the refusals that a visitor can understand, by code. A reason has its own texts.
var notices = map[problem.Code]Notice{
	problem.RateLimited: {http.StatusTooManyRequests, "tooMuch"},
	problem.Forbidden:   {http.StatusForbidden, "closed"},
	problem.Conflict:    {http.StatusConflict, "changed"},
}

// NoticeOf returns the notice for the error of an action. It reports false if no notice explains the
// error.
func NoticeOf(err error) (Notice, bool) {
	p, ok := problem.As(err)
	if !ok {
		return Notice{}, false
	}
	n, ok := notices[p.Code]
	if reason := problem.ReasonOf(err); ok && reason != nil {
		n.Name = reason.Notice
	}
	return n, ok
}
