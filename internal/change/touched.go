package change

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// Touched collects the ids of what a request made, and of the deliveries that it
// caused, for the line that the request leaves in the log.
type Touched struct {
	mu    sync.Mutex
	attrs []slog.Attr
}

// Attrs are the ids so far.
func (t *Touched) Attrs() []slog.Attr {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]slog.Attr(nil), t.attrs...)
}

type touchedKey struct{}

// WithTouched lets the use cases note what they touch.
func WithTouched(ctx context.Context) (context.Context, *Touched) {
	t := &Touched{}
	return context.WithValue(ctx, touchedKey{}, t), t
}

// Touch notes the ids of a change that is committed, if anybody wants to know.
func Touch(ctx context.Context, name string, ids ...fmt.Stringer) {
	t, ok := ctx.Value(touchedKey{}).(*Touched)
	if !ok || len(ids) == 0 {
		return
	}
	attr := slog.String(name, ids[0].String())
	if len(ids) > 1 {
		all := make([]string, len(ids))
		for i, id := range ids {
			all[i] = id.String()
		}
		attr = slog.Any(name, all)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attrs = append(t.attrs, attr)
}
