// Package webhooks keeps the receivers of events and the log of what they were sent:
// webhooks, deliveries, replays, recoveries, and failures in a row. README.md states
// the rules.
package webhooks

import (
	"log/slog"

	"golang.org/x/sync/singleflight"

	"earshot/internal/batch"
	"earshot/internal/change"
	"earshot/internal/inflight"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/send"
	"earshot/internal/store"
)

// Settings are what a deployment chooses.
type Settings struct {
	// Cap is how many webhooks an organization on a paid plan may have.
	Cap int
	// FeedOff says that not all events are kept, so that there is no feed of them.
	FeedOff bool
}

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store    *store.Store
	changes  *change.Runner
	guard    send.Guard
	secrets  *seal.Box
	settings Settings
	log      *slog.Logger
	// feeds reads what the feeds of organizations reach to, for all who wait for an event.
	feeds *batch.Batcher[publicid.Organization, store.Feed]
	// waiting has a place for each of them.
	waiting *inflight.Room[publicid.Organization]
	// health has the reads of webhooks' health that are under way, by webhook.
	health singleflight.Group
}

// New makes the service from its collaborators. The guard judges URLs, and the box
// holds secrets and URLs.
func New(s *store.Store, changes *change.Runner, guard send.Guard, secrets *seal.Box, settings Settings, log *slog.Logger) *Service {
	return &Service{
		store: s, changes: changes, guard: guard, secrets: secrets, settings: settings, log: log,
		feeds:   batch.New(feedsTogether, feedsTimeout, feedsOf(s)),
		waiting: inflight.NewRoom[publicid.Organization](mostWaitingOfOne, mostWaiting),
	}
}
