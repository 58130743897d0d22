package change

import (
	"context"

	"github.com/go-faster/errors"
)

type preconditionKey struct{}

// precondition is a condition on the resource that a request changes.
type precondition struct {
	// judge is a func(Out) error for the resource.
	judge any
	// judged is true once the use case has called judge.
	judged bool
}

// OnlyIf makes a change in the context depend on judge. The use case calls judge with the locked
// resource and fails if judge returns an error.
func OnlyIf[Out any](ctx context.Context, judge func(Out) error) context.Context {
	return context.WithValue(ctx, preconditionKey{}, &precondition{judge: judge})
}

// Judge checks a locked resource against the request's precondition, if it has one.
func Judge[Out any](ctx context.Context, found Out) error {
	return JudgeLoaded(ctx, func() (Out, error) { return found, nil })
}

// JudgeLoaded is Judge for a use case that needs less of the resource than the precondition does.
// It calls load only if the request has a precondition.
func JudgeLoaded[Out any](ctx context.Context, load func() (Out, error)) error {
	p, _ := ctx.Value(preconditionKey{}).(*precondition)
	if p == nil {
		return nil
	}
	p.judged = true
	judge, ok := p.judge.(func(Out) error)
	if !ok {
		return errors.Errorf("a precondition of another resource than %T", *new(Out))
	}
	found, err := load()
	if err != nil {
		return err
	}
	return judge(found)
}

// onlyJudged wraps fn so that it fails if it ignores the request's precondition.
func onlyJudged(ctx context.Context, fn func(c *Change) error) func(c *Change) error {
	p, _ := ctx.Value(preconditionKey{}).(*precondition)
	if p == nil {
		return fn
	}
	return func(c *Change) error {
		err := fn(c)
		if err == nil && !p.judged {
			return errors.New("a use case changes something without a look at the precondition")
		}
		return err
	}
}
