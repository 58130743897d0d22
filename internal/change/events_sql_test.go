package change_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/delivery"
	"earshot/ent/db/event"
	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/internal/testkit/fixture"
)

func TestManyEventsAreInsertedByOneStatement(t *testing.T) {
	t.Parallel()
	for name, subscribedOnly := range map[string]bool{"with those that nobody subscribes to": false, "without them": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := fixture.NewOutbox(t)
			client := o.Store.Client()
			hook := func(events ...string) *db.WebhookCreate {
				return client.Webhook.Create().SetURL(fixture.HookURL).SetSecretSealed([]byte(fixture.Sealed)).SetEvents(events)
			}
			both := hook("post.created", "vote.created").SaveX(o.Ctx)
			votes := hook("vote.created").SaveX(o.Ctx)
			hook("vote.created").SetEnabled(false).SaveX(o.Ctx)
			hook("vote.created").SetDeletedAt(fixture.Ago(0)).SaveX(o.Ctx)
			rows := make([]change.EventRow, 200)
			for i := range rows {
				rows[i] = change.EventRow{
					ID: publicid.NewEvent(), Type: []string{"vote.created", "contact.created"}[i%2], At: fixture.Ago(0), Payload: []byte(fixture.Payload + fmt.Sprint(i)),
				}
			}
			sent, err := change.InTxWithRows(o.Ctx, o.Store, o.Organization, nil, func(*db.Tx, change.TakenKeys) (change.AtCommit, error) {
				return change.AtCommit{Events: rows, SubscribedOnly: subscribedOnly}, nil
			})
			require.NoError(t, err)

			want := rows
			if subscribedOnly {
				want = nil
				for i := 0; i < len(rows); i += 2 {
					want = append(want, rows[i])
				}
			}
			found := client.Event.Query().Where(event.SequenceNotNil(), event.IDNEQ(o.Event)).Order(db.Asc(event.FieldSequence)).AllX(o.Ctx)
			require.Len(t, found, len(want))
			for i, e := range found {
				require.Equal(t, want[i].ID, e.ID, "in the order in which they were given")
				require.Equal(t, want[i].Payload, e.Payload)
				require.Equal(t, *found[0].Sequence+int64(i), *e.Sequence, "without a gap")
			}
			require.Len(t, sent, 200, "100 votes, each to two webhooks")
			count := map[publicid.Webhook]int{}
			for _, d := range sent {
				require.Equal(t, []string{"vote.created", fixture.HookURL}, []string{d.EventType, d.URL})
				count[d.Webhook]++
			}
			require.Equal(t, map[publicid.Webhook]int{both.ID: 100, votes.ID: 100}, count)
			of := client.Delivery.Query().Where(delivery.WebhookID(votes.ID)).Order(db.Asc(delivery.FieldID)).AllX(o.Ctx)
			for i, d := range of {
				require.Equal(t, rows[2*i].ID, d.EventID, "lists of deliveries have the order of the events")
				require.Equal(t, d.CreatedAt, *d.NextAttemptAt, "due at once")
			}
		})
	}
}
