// Package problem is the vocabulary of the errors in requests.
//
// The domain returns these errors, and the api package alone maps them to HTTP statuses. Any other
// error is a fault of the service and becomes ERR_INTERNAL.
package problem

import (
	"fmt"

	"github.com/go-faster/errors"
)

// Code is the machine-readable half of an error answer (specification, Errors).
type Code string

// The codes. The api package has the HTTP status of each.
const (
	Unauthorized      Code = "ERR_UNAUTHORIZED"
	PlanLimit         Code = "ERR_PLAN_LIMIT"
	ScopeInsufficient Code = "ERR_SCOPE_INSUFFICIENT"
	Forbidden         Code = "ERR_FORBIDDEN"
	NotFound          Code = "ERR_NOT_FOUND"
	MethodNotAllowed  Code = "ERR_METHOD_NOT_ALLOWED"
	Conflict          Code = "ERR_CONFLICT"
	PayloadTooLarge   Code = "ERR_PAYLOAD_TOO_LARGE"
	UnsupportedMedia  Code = "ERR_UNSUPPORTED_MEDIA_TYPE"
	Validation        Code = "ERR_VALIDATION"
	RateLimited       Code = "ERR_RATE_LIMITED"
	// IdempotencyInProgress means that the first request with the Idempotency-Key is still running.
	// IdempotencyMismatch means that the first request had another query or body.
	IdempotencyInProgress Code = "ERR_IDEMPOTENCY_IN_PROGRESS"
	IdempotencyMismatch   Code = "ERR_IDEMPOTENCY_MISMATCH"
	// Gone means that the data after a place in the feed, or in a list of changes, was removed.
	Gone Code = "ERR_GONE"
	// PreconditionFailed means that the resource no longer matches the If-Match.
	PreconditionFailed Code = "ERR_PRECONDITION_FAILED"
	Unavailable        Code = "ERR_UNAVAILABLE"
	Internal           Code = "ERR_INTERNAL"
)

// Error is a problem with a request. The caller may see all of it.
type Error struct {
	Code    Code
	Message string
	Details map[string]any
}

// Error returns the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// New makes a problem without details.
func New(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// With adds one detail and returns the same problem.
func (e *Error) With(key string, value any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// As finds the problem in an error's chain.
func As(err error) (*Error, bool) {
	var p *Error
	ok := errors.As(err, &p)
	return p, ok
}

// Is reports whether the error's chain holds a problem with that code.
func Is(err error, code Code) bool {
	p, ok := As(err)
	return ok && p.Code == code
}

// Missing is the problem of a resource that the caller's organization doesn't have. It is the same
// if another organization has the resource. The noun is the kind of the resource, for example
// "post".
func Missing(noun string) *Error {
	return New(NotFound, fmt.Sprintf("There is no such %s in this organization.", noun))
}

// MissingIn is Missing for an id in a member of a body.
func MissingIn(field, noun string) *Error {
	return Missing(noun).With("field", field)
}

// Field is one failure of validation. Rule is the JSON Schema keyword of the contract's limit
// (maxLength, pattern, enum, …), or a word of our own if no keyword fits.
type Field struct {
	Field   string `json:"field"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// Fields collects every failure of one request.
type Fields []Field

// Add adds a failure.
func (f *Fields) Add(field, rule, format string, args ...any) {
	*f = append(*f, Field{Field: field, Rule: rule, Message: fmt.Sprintf(format, args...)})
}

// maxFields is far more than a person reads, and about 100 KB of answer. A body of 1 MiB has room
// for 100,000 failures.
const maxFields = 1000

// Err returns nil if there is no failure. Otherwise it returns one problem with all failures, but
// at most the first 1,000.
func (f Fields) Err() error {
	if len(f) == 0 {
		return nil
	}
	message := f[0].Message
	if f[0].Field != "" {
		message = f[0].Field + ": " + message
	}
	if len(f) > 1 {
		message = fmt.Sprintf("%s (and %d more, see details.fields)", message, len(f)-1)
	}
	return New(Validation, message).With("fields", []Field(f[:min(len(f), maxFields)]))
}

// Invalid is the problem of a single failure.
func Invalid(field, rule, format string, args ...any) error {
	var f Fields
	f.Add(field, rule, format, args...)
	return f.Err()
}
