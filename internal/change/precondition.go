package change

import (
	"context"

	"github.com/go-faster/errors"
)

type preconditionKey struct{}

// precondition is what a resource has to be like for a request to change it.
type precondition struct {
	// judge is a func(Out) error of the resource.
	judge any
	// judged says that the use case has asked it.
	judged bool
}

// OnlyIf has what is changed with the context be changed only if judge returns no error for the
// resource as it is then, under the lock that keeps others from changing it.
func OnlyIf[Out any](ctx context.Context, judge func(Out) error) context.Context {
	return context.WithValue(ctx, preconditionKey{}, &precondition{judge: judge})
}

// Judge holds the resource that a use case has locked to change it against the request's
// precondition, if it has one.
func Judge[Out any](ctx context.Context, found Out) error {
	return JudgeLoaded(ctx, func() (Out, error) { return found, nil })
}

// JudgeLoaded is Judge where the use case itself needs less of the resource than the judge: load is
// called only for a request with a precondition.
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

// onlyJudged is fn, which fails where it leaves a precondition out.
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
