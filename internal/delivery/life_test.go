package delivery_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"earshot/ent/db"
	"earshot/ent/db/organization"
	changes "earshot/internal/change"
	"earshot/internal/jobs"
	"earshot/internal/postgres"
	"earshot/internal/seal"
	"earshot/internal/send"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
	"earshot/internal/webhooks"
)

// The life_ files are a model of a delivery's row. Several actors change the rows in a random
// order: two workers, the sweep, an operator, the owner of the webhooks and the retention. They use
// the service's own statements and use cases on a real Postgres. Workers die, starts and runs get
// lost, and leases end. After each step the tables have to match the model, which shares no code
// with the service.
//
// Of Temporal and of the activities, the model has the parts that affect the rows. Runs have a
// delivery and the number of the next attempt. Attempts are claimed, sent and recorded. The model
// may do more than the real ones, but it leaves nothing out.
//
// The model uses the service's times with minutes in place of seconds, so the duration of a test
// case doesn't matter. A step that advances the time shifts the rows' times into the past.

const (
	lifeLease = 12 * time.Minute
	lifeGrace = 30 * time.Minute
	// When the model decides by a time, that time is at least this far from the present. The times
	// of a row differ from the model's by no more than this.
	lifeSlack = time.Minute
	// lifeLimit is the limit in the specification (Delivery and retries).
	lifeLimit = 50
)

var lifeDelays = []time.Duration{30 * time.Minute, 2 * time.Hour, 10 * time.Hour, 60 * time.Hour}

// `make test` tries 20 cases and `make test-all` 100. Pass -rapid.checks=5000 for more. A case that
// fails is shrunk and stored in testdata/rapid, and later runs try it first.
func TestADeliveryKeepsItsGuaranteesUnderRandomSequencesOfEvents(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s, pool := fixture.Open(t, url), fixture.PoolOf(t, url)
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(t, s, pool)
		t.Repeat(map[string]func(*rapid.T){
			"":                          l.check,
			"something happens":         l.happen,
			"workers claim":             l.claim,
			"workers claim (2)":         l.claim, // a step with several entries is drawn more often
			"workers claim (3)":         l.claim,
			"receivers answer":          l.answer,
			"receivers answer (2)":      l.answer,
			"receivers answer (3)":      l.answer,
			"workers record":            l.record,
			"workers record (2)":        l.record,
			"workers record (3)":        l.record,
			"a worker dies":             l.die,
			"Temporal misses a worker":  l.miss,
			"attempts are put off":      l.putOff,
			"time goes by":              l.pass,
			"time goes by to an event":  l.passToNext,
			"the sweep":                 l.sweep,
			"a run is lost":             l.lose,
			"terminate":                 l.terminate,
			"the sweep ends terminated": l.endTerminated,
			"retry_now":                 l.retryNow,
			"give_up":                   l.giveUp,
			"reset":                     l.reset,
			"replay":                    l.replay,
			"replay_delivery":           l.replayAs,
			"recover":                   l.recover,
			"disable or enable":         l.toggle,
			"failure_streak looks":      l.followStreaks,
			"delete":                    l.delete,
			"retention":                 l.retain,
			"retention of the deleted":  l.removeDeleted,
		})
	})
}

// life is one test case.
type life struct {
	t        *rapid.T
	ctx      context.Context // of the webhooks' owner
	store    *postgres.DB
	pool     *pgxpool.Pool
	webhooks *webhooks.Service
	changes  *changes.Runner

	// Settings of the deployment.
	delays        []time.Duration
	countAttempts bool

	// past is the total by which the rows' times were shifted.
	past       time.Duration
	hooks      []*lifeHook
	rows       []*lifeRow
	runs       []*lifeRun
	over       []*lifeRun // closed runs that may be reset
	terminated []*lifeRun
	attempts   []*lifeAttempt // in flight
	dispatched []changes.PendingDelivery
	made       int // number of names given
}

func newLife(t *rapid.T, s *postgres.DB, pool *pgxpool.Pool) *life {
	ctx := t.Context()
	l := &life{t: t, store: s, pool: pool}
	for _, table := range []string{"recoveries", "webhooks", "events"} {
		_, err := l.pool.Exec(ctx, "DELETE FROM "+table) // rows of the previous case
		require.NoError(t, err)
	}
	o, err := s.Client().Organization.Create().SetName("Acme").SetPlan(organization.PlanBusiness).Save(s.Across("a test").Context(ctx))
	require.NoError(t, err)
	l.ctx = changes.WithCaller(ctx, &changes.Caller{Organization: o, Key: &db.APIKey{}})
	box := seal.New()
	require.NoError(t, box.Add("k1", make([]byte, 32)))
	l.changes = changes.NewRunner(s, l, nil, changes.Settings{})
	l.webhooks = webhooks.New(s, l.changes, send.NewGuard(nil, false), box, webhooks.Settings{Cap: 10}, slog.New(slog.DiscardHandler))
	l.delays = lifeDelays[:rapid.SampledFrom([]int{4, 0, 1}).Draw(t, "retries")]
	l.countAttempts = rapid.Bool().Draw(t, "each failed attempt counts")
	for range rapid.IntRange(1, 3).Draw(t, "webhooks") {
		l.register()
	}
	return l
}

// register creates a webhook. It may already have 48 or 49 failures in a row.
func (l *life) register() {
	made, err := l.webhooks.RegisterWebhook(l.ctx, webhooks.WebhookInput{
		URL: new(l.name("https://example.com/")), Events: &[]string{"post.created"},
	}, changes.Request[*webhooks.WithSecret]{})
	require.NoError(l.t, err)
	h := &lifeHook{id: made.ID, enabled: true, failures: rapid.SampledFrom([]int{0, lifeLimit - 1, lifeLimit - 2}).Draw(l.t, "failures")}
	_, err = l.pool.Exec(l.ctx, "UPDATE webhooks SET consecutive_failures = $1 WHERE id = $2", h.failures, h.id.UUID())
	require.NoError(l.t, err)
	l.hooks = append(l.hooks, h)
}

func (l *life) name(of string) string {
	l.made++
	return fmt.Sprint(of, l.made)
}

// now is the present time of the model, whose own times are never shifted.
func (l *life) now() time.Time { return time.Now().Add(l.past) }

// some draws one or more of several items, in any order. It skips the step if there are none.
func some[T any](t *rapid.T, what string, of []T) []T {
	if len(of) == 0 {
		t.Skip("no " + what)
	}
	left := slices.Clone(of)
	found := make([]T, rapid.IntRange(1, min(len(of), 8)).Draw(t, "how many "+what))
	for i := range found {
		place := rapid.IntRange(0, len(left)-1).Draw(t, what)
		found[i] = left[place]
		left = slices.Delete(left, place, place+1)
	}
	return found
}

func one[T any](t *rapid.T, what string, of []T) T {
	if len(of) == 0 {
		t.Skip("no " + what)
	}
	return of[rapid.IntRange(0, len(of)-1).Draw(t, what)]
}

func where[T any](all []T, is func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(v T) bool { return !is(v) })
}

// Deliver records the deliveries that a change dispatches: life is the dispatcher.
func (l *life) Deliver(all []changes.PendingDelivery) { l.dispatched = append(l.dispatched, all...) }

// Queue does nothing: the steps run recoveries and read streaks themselves, and the model has no other
// job.
func (*life) Queue([]jobs.Request) {}
