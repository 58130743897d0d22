package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/delivery"
	"earshot/ent/db/event"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

func TestManyEventsAreInsertedByOneStatement(t *testing.T) {
	t.Parallel()
	for name, subscribedOnly := range map[string]bool{"with those that nobody subscribes to": false, "without them": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOutbox(t)
			client := o.store.Client()
			hook := func(events ...string) *db.WebhookCreate {
				return client.Webhook.Create().SetURL(hookURL).SetSecretSealed([]byte(sealed)).SetEvents(events)
			}
			both := hook("post.created", "vote.created").SaveX(o.ctx)
			votes := hook("vote.created").SaveX(o.ctx)
			hook("vote.created").SetEnabled(false).SaveX(o.ctx)
			hook("vote.created").SetDeletedAt(ago(0)).SaveX(o.ctx)
			rows := make([]store.EventRow, 200)
			for i := range rows {
				rows[i] = store.EventRow{
					ID: publicid.NewEvent(), Type: []string{"vote.created", "contact.created"}[i%2], At: ago(0), Payload: []byte(payload + fmt.Sprint(i)),
				}
			}
			sent, err := o.store.InTxWithRides(o.ctx, o.organization, nil, func(*db.Tx, store.TakenKeys) (store.AtCommit, error) {
				return store.AtCommit{Events: rows, SubscribedOnly: subscribedOnly}, nil
			})
			require.NoError(t, err)

			want := rows
			if subscribedOnly {
				want = nil
				for i := 0; i < len(rows); i += 2 {
					want = append(want, rows[i])
				}
			}
			found := client.Event.Query().Where(event.SequenceNotNil(), event.IDNEQ(o.event)).Order(db.Asc(event.FieldSequence)).AllX(o.ctx)
			require.Len(t, found, len(want))
			for i, e := range found {
				require.Equal(t, want[i].ID, e.ID, "in the order in which they were given")
				require.Equal(t, want[i].Payload, e.Payload)
				require.Equal(t, *found[0].Sequence+int64(i), *e.Sequence, "without a gap")
			}
			require.Len(t, sent, 200, "100 votes, each to two webhooks")
			count := map[publicid.Webhook]int{}
			for _, d := range sent {
				require.Equal(t, []string{"vote.created", hookURL}, []string{d.EventType, d.URL})
				count[d.Webhook]++
			}
			require.Equal(t, map[publicid.Webhook]int{both.ID: 100, votes.ID: 100}, count)
			of := client.Delivery.Query().Where(delivery.WebhookID(votes.ID)).Order(db.Asc(delivery.FieldID)).AllX(o.ctx)
			for i, d := range of {
				require.Equal(t, rows[2*i].ID, d.EventID, "lists of deliveries have the order of the events")
				require.Equal(t, d.CreatedAt, *d.NextAttemptAt, "due at once")
			}
		})
	}
}
