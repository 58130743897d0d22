package activities_test

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"earshot/activities"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/send"
	"earshot/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// panics is a log handler that panics at the lines of one delivery. Any line of an attempt's code
// might panic like that.
type panics struct {
	slog.Handler
	at string
}

func (p panics) Handle(ctx context.Context, line slog.Record) error {
	line.Attrs(func(a slog.Attr) bool {
		if a.Key == "deliveryId" && a.Value.String() == p.at {
			panic("nobody expected this")
		}
		return true
	})
	return p.Handler.Handle(ctx, line) //nolint:wrapcheck // it is the other's
}

// due holds deliveries of a webhook that are due for their first attempts.
type due struct {
	store   *postgres.DB
	ctx     context.Context
	box     *seal.Box
	webhook publicid.Webhook
	all     []activities.Due
}

func newDue(t *testing.T, n int) due {
	t.Helper()
	s, box, receiver := testkit.Store(t), seal.New(), testkit.NewReceiver(t)
	require.NoError(t, box.Add("k1", make([]byte, 32)))
	o, err := s.Client().Organization.Create().SetName("Acme").Save(s.Across("a test").Context(t.Context()))
	require.NoError(t, err)
	ctx, hook := postgres.WithOrganization(t.Context(), o.ID), publicid.NewWebhook()
	s.Client().Webhook.Create().SetID(hook).SetURL(receiver.URL).SetEvents([]string{"post.created"}).
		SetSecretSealed(box.Seal(hook.String(), "whsec_"+strings.Repeat("a", 32))).SaveX(ctx)
	happened := s.Client().Event.Create().SetType("post.created").SetPayload([]byte("{}")).SaveX(ctx).ID
	made := due{store: s, ctx: ctx, box: box, webhook: hook}
	for range n {
		d := s.Client().Delivery.Create().SetWebhookID(hook).SetEventID(happened).SetEventType("post.created").
			SetNextAttemptAt(time.Now()).SaveX(ctx)
		made.all = append(made.all, activities.Due{ID: d.ID, Webhook: hook, Attempt: 1})
	}
	return made
}

// attempt makes the first attempts.
func (d due) attempt(t *testing.T, log *slog.Logger) (result activities.AttemptResult) {
	t.Helper()
	sender := send.New(send.Options{AllowHTTP: true, AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	deliveries := activities.NewDeliveries(d.store, sender, d.box, nil, activities.DeliveryOptions{
		Delays: []time.Duration{time.Hour}, Log: log,
	})
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(deliveries.AttemptFirst)
	answer, err := env.ExecuteActivity(deliveries.AttemptFirst, activities.AttemptParams{Deliveries: d.all})
	require.NoError(t, err)
	require.NoError(t, answer.Get(&result))
	return result
}

func TestAPanicInAnAttemptPutsItsDeliveryOffAndHurtsNoOther(t *testing.T) {
	t.Parallel()
	d, logs := newDue(t, 3), testkit.NewLogs()
	result := d.attempt(t, slog.New(panics{logs.Logger().Handler(), d.all[1].ID.String()}))
	require.Equal(t, []string{"200", "", "200"}, result.Answers)
	require.Len(t, result.Pending, 1)
	require.Equal(t, d.all[1], result.Pending[0].Due, "it is to be attempted again, by the same number")
	require.Positive(t, result.Pending[0].In)
	require.Contains(t, logs.String(), "nobody expected this")
	require.Contains(t, logs.String(), "panic_test.go", "with the place")
}
