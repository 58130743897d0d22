package webhooks

import (
	"context"
	"sync"

	"earshot/internal/publicid"
	"earshot/internal/store"
)

// waiters counts who waits for events, by organization.
type waiters struct {
	mu  sync.Mutex
	of  map[publicid.Organization]int
	all int
}

// enter lets a caller wait, until leave is called, unless too many do. Such a one is answered
// at once, as if it had asked not to wait.
func (w *waiters) enter(of publicid.Organization) (leave func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[of] >= mostWaitingOfOne || w.all >= mostWaiting {
		return nil, false
	}
	w.of[of]++
	w.all++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all--
		if w.of[of]--; w.of[of] == 0 {
			delete(w.of, of)
		}
	}, true
}

// feedsOf reads what the feeds of organizations reach to, in their order.
func feedsOf(s *store.Store) func(context.Context, []publicid.Organization) ([]store.Feed, error) {
	return func(ctx context.Context, of []publicid.Organization) ([]store.Feed, error) {
		found, err := s.Feeds(ctx, of)
		if err != nil {
			return nil, err
		}
		feeds := make([]store.Feed, len(of))
		for i, id := range of {
			feeds[i] = found[id]
		}
		return feeds, nil
	}
}
