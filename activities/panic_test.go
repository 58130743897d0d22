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
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/send"
	"earshot/internal/store"
	"earshot/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// panics when a line of the log is about one delivery, as any line of an attempt's own code
// might.
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

func TestAPanicInAnAttemptPutsItsDeliveryOffAndHurtsNoOther(t *testing.T) {
	t.Parallel()
	s, box, receiver := testkit.Store(t), seal.New(), testkit.NewReceiver(t)
	require.NoError(t, box.Add("k1", make([]byte, 32)))
	o, err := s.Client().Organization.Create().SetName("Acme").Save(store.System(t.Context(), "test"))
	require.NoError(t, err)
	ctx, hook := store.WithOrganization(t.Context(), o.ID), publicid.NewWebhook()
	s.Client().Webhook.Create().SetID(hook).SetURL(receiver.URL).SetEvents([]string{"post.created"}).
		SetSecretSealed(box.Seal(hook.String(), "whsec_"+strings.Repeat("a", 32))).SaveX(ctx)
	happened := s.Client().Event.Create().SetType("post.created").SetPayload([]byte("{}")).SaveX(ctx).ID
	var due []activities.Due
	for range 3 {
		d := s.Client().Delivery.Create().SetWebhookID(hook).SetEventID(happened).SetEventType("post.created").
			SetNextAttemptAt(time.Now()).SaveX(ctx)
		due = append(due, activities.Due{ID: d.ID, Webhook: hook, Attempt: 1})
	}
	logs := testkit.NewLogs()
	sender := send.New(send.Options{AllowHTTP: true, AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	deliveries := activities.NewDeliveries(s, sender, box, nil, activities.DeliveryOptions{
		Delays: []time.Duration{time.Hour}, Log: slog.New(panics{logs.Logger().Handler(), due[1].ID.String()}),
	})
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(deliveries.AttemptFirst)
	answer, err := env.ExecuteActivity(deliveries.AttemptFirst, activities.AttemptParams{Deliveries: due})
	require.NoError(t, err)
	var result activities.AttemptResult
	require.NoError(t, answer.Get(&result))
	require.Equal(t, []string{"200", "", "200"}, result.Answers)
	require.Len(t, result.Pending, 1)
	require.Equal(t, due[1], result.Pending[0].Due, "it is to be attempted again, by the same number")
	require.Positive(t, result.Pending[0].In)
	require.Contains(t, logs.String(), "nobody expected this")
	require.Contains(t, logs.String(), "panic_test.go", "with the place")
}
