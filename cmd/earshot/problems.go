package main

import (
	"strings"

	"github.com/go-faster/errors"

	"earshot/internal/problem"
)

// inWords formats a caller's problem for a terminal: each invalid field with its reason, without
// the error code.
func inWords(err error) error {
	p, ok := problem.As(err)
	if !ok {
		return err
	}
	fields, _ := p.Details["fields"].([]problem.Field)
	if problem.SubscriberMailsNotAllowed.Is(err) {
		return errors.New("the organization may not send e-mails to end-users: --subscriber-mails-allowed allows it")
	}
	if len(fields) == 0 {
		return errors.New(p.Message)
	}
	lines := make([]string, len(fields))
	for i, f := range fields {
		lines[i] = f.Field + " " + f.Message
	}
	return errors.New(strings.Join(lines, "; "))
}
