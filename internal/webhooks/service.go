// Package webhooks manages webhooks and their delivery log: deliveries, replays, recoveries and
// failure streaks. README.md states the rules.
package webhooks

import (
	"log/slog"

	"golang.org/x/sync/singleflight"

	"earshot/internal/batch"
	"earshot/internal/change"
	"earshot/internal/inflight"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/send"
)

// Settings are the options of a deployment.
type Settings struct {
	// Cap is the maximum number of webhooks of an organization on a paid plan.
	Cap int
	// FeedOff turns the event feed off, because the deployment doesn't keep all events.
	FeedOff bool
}

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store    *postgres.DB
	changes  *change.Runner
	guard    send.Guard
	secrets  *seal.Box
	settings Settings
	log      *slog.Logger
	// feeds reads the bounds of organizations' feeds for all waiting requests.
	feeds batch.Batcher[publicid.Organization, feed]
	// waiting limits the waiting requests.
	waiting *inflight.Room[publicid.Organization]
	// health shares concurrent reads of a webhook's health.
	health singleflight.Group
}

// New makes the service. The guard checks URLs, and the box seals secrets and URLs.
func New(s *postgres.DB, changes *change.Runner, guard send.Guard, secrets *seal.Box, settings Settings, log *slog.Logger) *Service {
	return &Service{
		store: s, changes: changes, guard: guard, secrets: secrets, settings: settings, log: log,
		feeds:   batch.New(feedsTogether, feedsTimeout, feedsOf(s)),
		waiting: inflight.NewRoom[publicid.Organization](mostWaitingOfOne, mostWaiting),
	}
}
