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

// Error is an answer that reports an error.
//
//	var e *earshot.Error
//	if errors.As(err, &e) { … e.Details.Fields … }
//	if errors.Is(err, earshot.ErrNotFound) { … }
type Error struct {
	Status int
	// Code is one of the Err… values, or a code that this version doesn't know. It is HTTP_ with the
	// status if the answer has no code.
	Code ErrorCode
	// Message is for people and may change.
	Message string
	// Details are for programs. Their members depend on the code.
	Details ErrorDetails
	// RequestID identifies the request in the service's logs.
	RequestID string
	// RetryAfter is the wait that the service asks for, or 0.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	text := fmt.Sprintf("earshot: %d %s: %s", e.Status, e.Code, e.Message)
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// Is reports whether target is the error's code.
func (e *Error) Is(target error) bool { return target == e.Code }

// Error makes an error code a valid target of errors.Is.
func (c ErrorCode) Error() string { return string(c) }

// ConnectionError means that no answer came, or only a part of it. A write may have taken effect.
type ConnectionError struct {
	request string // its method and path
	cause   error
	timeout bool
}

func (e *ConnectionError) Error() string {
	return "earshot: no answer to " + e.request + ": " + e.cause.Error()
}

// Unwrap returns the error of the connection.
func (e *ConnectionError) Unwrap() error { return e.cause }

// Timeout reports whether the request took too long. If the caller's own context ends, the error is no
// ConnectionError.
func (e *ConnectionError) Timeout() bool {
	var t interface{ Timeout() bool }
	return e.timeout || errors.As(e.cause, &t) && t.Timeout()
}

// newError makes an Error from an answer that isn't a success.
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
		envelope.Error.Code = "" // not from the service
	}
	e.Code = cmp.Or(envelope.Error.Code, ErrorCode("HTTP_"+strconv.Itoa(e.Status)))
	e.Message = envelope.Error.Message
	if e.Message == "" {
		e.Message = "the answer isn't the service's (" + http.StatusText(e.Status) + ")"
	}
	if json.Unmarshal(envelope.Error.Details, &e.Details) != nil {
		e.Details = ErrorDetails{} // of another shape: keep them as they came
		_ = json.Unmarshal(envelope.Error.Details, &e.Details.Extra)
	}
	return e
}

// retryAfter returns the wait that the service asks for, or 0 if it isn't a whole number of seconds.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
