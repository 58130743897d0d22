package earshot

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Error is an answer that says that something is wrong.
//
//	var e *earshot.Error
//	if errors.As(err, &e) { … e.Details.Fields … }
//	if errors.Is(err, earshot.ErrNotFound) { … }
type Error struct {
	Status int
	// Code is one of the Err… values, or one that this version doesn't know, or HTTP_ with the status where
	// the answer has none.
	Code ErrorCode
	// Message is for people, and may change.
	Message string
	// Details are for programs; which there are depends on the code.
	Details ErrorDetails
	// RequestID finds the request in the service's logs.
	RequestID string
	// RetryAfter is how long the service asks to wait, 0 if it doesn't.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	text := fmt.Sprintf("earshot: %d %s: %s", e.Status, e.Code, e.Message)
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// Is tells whether the target is the error's code.
func (e *Error) Is(target error) bool { return target == e.Code }

// Error makes codes the targets of errors.Is.
func (c ErrorCode) Error() string { return string(c) }

// ConnectionError says that there was no answer, or not all of it. A write may have taken effect.
type ConnectionError struct {
	request string // its method and path
	cause   error
	timeout bool
}

func (e *ConnectionError) Error() string {
	return "earshot: no answer to " + e.request + ": " + e.cause.Error()
}

// Unwrap is what the connection said.
func (e *ConnectionError) Unwrap() error { return e.cause }

// Timeout tells whether the request took too long. The end of the caller's own context is no ConnectionError.
func (e *ConnectionError) Timeout() bool {
	var t interface{ Timeout() bool }
	return e.timeout || errors.As(e.cause, &t) && t.Timeout()
}

// newError reads an answer without what was asked for.
func newError(answer *http.Response, body []byte) *Error {
	e := &Error{Status: answer.StatusCode, RequestID: answer.Header.Get("X-Request-Id"), RetryAfter: retryAfter(answer.Header)}
	var envelope struct {
		Error struct {
			Code    ErrorCode       `json:"code"`
			Message string          `json:"message"`
			Details json.RawMessage `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &envelope) != nil {
		envelope.Error.Code = "" // of somebody else
	}
	e.Code = cmp.Or(envelope.Error.Code, ErrorCode("HTTP_"+strconv.Itoa(e.Status)))
	e.Message = envelope.Error.Message
	if e.Message == "" {
		e.Message = "the answer isn't the service's (" + http.StatusText(e.Status) + ")"
	}
	if json.Unmarshal(envelope.Error.Details, &e.Details) != nil {
		e.Details = ErrorDetails{} // of another shape, so they are as they came
		_ = json.Unmarshal(envelope.Error.Details, &e.Details.Extra)
	}
	return e
}

// retryAfter is how long to wait, 0 unless it is a number of whole seconds.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
