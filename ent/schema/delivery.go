package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Delivery is one event on its way to one webhook. The row is the outbox: it
// is written with the change that caused it, and its state, not the workflow
// engine's, decides whether anything is sent.
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
		// When the next attempt is due; null once the delivery has ended. A
		// pending row that is long overdue has lost its workflow: the sweep
		// looks for those.
		field.Time("next_attempt_at").Optional().Nillable(),
		field.Time("last_attempt_at").Optional().Nillable(),
		field.Int("last_response_status").Optional().Nillable(),
		field.String("last_error").Optional().Nillable(),
		// How long the last attempt took, in milliseconds.
		field.Int("duration_ms").Optional().Nillable(),
		field.Time("delivered_at").Optional().Nillable(),
		field.Time("failed_at").Optional().Nillable(),
		field.UUID("replay_of", publicid.Delivery{}).Optional().Nillable().Immutable(),
		// The attempts that were made when the schedule began anew, because an
		// operator reset the workflow of a delivery that had failed.
		field.Int("schedule_start").Default(0),
		// The workflow that took the delivery on last.
		field.String("workflow_id").Optional().Nillable(),
		// And its run: a reset makes another of the same id.
		field.String("workflow_run_id").Optional().Nillable(),
		// While an attempt is in flight nobody else may make one.
		field.Time("lease_until").Optional().Nillable(),
	}
}

// Edges of the entity.
func (Delivery) Edges() []ent.Edge {
	return []ent.Edge{
		// The log of a deleted webhook goes with it.
		edge.To("webhook", Webhook.Type).Field("webhook_id").Unique().Required().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("event", Event.Type).Field("event_id").Unique().Required().Immutable(),
	}
}

// Indexes of the entity.
func (Delivery) Indexes() []ent.Index {
	return []ent.Index{
		// The log, and its filters that may find little in much.
		index.Fields("webhook_id", "id"),
		index.Fields("webhook_id", "event_type", "id"),
		index.Fields("webhook_id", "status", "id"),
		index.Fields("event_id"),
		// What was replayed already.
		index.Fields("replay_of").Annotations(entsql.IndexWhere("replay_of IS NOT NULL")),
		index.Fields("next_attempt_at").Annotations(entsql.IndexWhere("status = 'pending'")),
	}
}
