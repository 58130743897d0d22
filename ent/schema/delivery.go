package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Delivery is one event on its way to one webhook. The row is the outbox: the transaction of the
// change writes it. The state of the row decides whether anything is sent, not the state of the
// workflow.
type Delivery struct{ ent.Schema }

// Mixin of the entity.
func (Delivery) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (Delivery) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Delivery{}).Default(publicid.NewDelivery).Immutable(),
		field.UUID("webhook_id", publicid.Webhook{}).Immutable(),
		field.UUID("event_id", publicid.Event{}).Immutable(),
		field.String("event_type").Immutable(),
		field.Enum("status").Values("pending", "succeeded", "failed").Default("pending"),
		field.Int("attempt_count").Default(0),
		// The time of the next attempt, null once the delivery has ended. A pending row that is long
		// overdue has lost its workflow, and the sweep starts it again.
		field.Time("next_attempt_at").Optional().Nillable(),
		field.Time("last_attempt_at").Optional().Nillable(),
		field.Int("last_response_status").Optional().Nillable(),
		field.String("last_error").Optional().Nillable(),
		// Duration of the last attempt, in milliseconds.
		field.Int("duration_ms").Optional().Nillable(),
		field.Time("delivered_at").Optional().Nillable(),
		field.Time("failed_at").Optional().Nillable(),
		field.UUID("replay_of", publicid.Delivery{}).Optional().Nillable().Immutable(),
		// The number of attempts before the retry schedule restarted. It restarts when an operator
		// resets the workflow of a failed delivery.
		field.Int("schedule_start").Default(0),
		// The last workflow that took the delivery on.
		field.String("workflow_id").Optional().Nillable(),
		// The run of that workflow. A reset starts another run with the same workflow id.
		field.String("workflow_run_id").Optional().Nillable(),
		// The lease of the attempt in flight. Until it ends, no other attempt may start.
		field.Time("lease_until").Optional().Nillable(),
	}
}

// Edges of the entity.
func (Delivery) Edges() []ent.Edge {
	return []ent.Edge{
		// Deleting a webhook deletes its log.
		edge.To("webhook", Webhook.Type).Field("webhook_id").Unique().Required().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("event", Event.Type).Field("event_id").Unique().Required().Immutable(),
	}
}

// Indexes of the entity.
func (Delivery) Indexes() []ent.Index {
	return []ent.Index{
		// The delivery log, and its filters that may match few of many rows.
		index.Fields("webhook_id", "id"),
		index.Fields("webhook_id", "event_type", "id"),
		index.Fields("webhook_id", "status", "id"),
		index.Fields("event_id"),
		// Finds the replays of a delivery.
		index.Fields("replay_of").Annotations(entsql.IndexWhere("replay_of IS NOT NULL")),
		index.Fields("next_attempt_at").Annotations(entsql.IndexWhere("status = 'pending'")),
	}
}
