package change

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// LoggedIDs collects, for the request's log line, the ids that a request created and those of the
// deliveries that it caused.
type LoggedIDs struct {
	mu    sync.Mutex
	attrs []slog.Attr
}

// Attrs returns the ids collected so far.
func (t *LoggedIDs) Attrs() []slog.Attr {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]slog.Attr(nil), t.attrs...)
}

type loggedIDsKey struct{}

// WithLoggedIDs returns a context in which use cases record ids.
func WithLoggedIDs(ctx context.Context) (context.Context, *LoggedIDs) {
	t := &LoggedIDs{}
	return context.WithValue(ctx, loggedIDsKey{}, t), t
}

// LogIDs records the ids of a committed change, if the context has LoggedIDs.
func LogIDs(ctx context.Context, name string, ids ...fmt.Stringer) {
	t, ok := ctx.Value(loggedIDsKey{}).(*LoggedIDs)
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
