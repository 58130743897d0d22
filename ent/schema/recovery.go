package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Recovery replays what failed for good at a webhook within a window. The row is
// what a caller reads of its progress; the workflow of the same id does it.
type Recovery struct{ ent.Schema }

// Mixin of the entity.
func (Recovery) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (Recovery) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Recovery{}).Default(publicid.NewRecovery).Immutable(),
		field.UUID("webhook_id", publicid.Webhook{}).Immutable(),
		// The window, by the creation of deliveries: from since up to and without
		// until.
		field.Time("since").Immutable(),
		field.Time("until").Immutable(),
		// Null is every event that the webhook subscribes to.
		field.String("event_type").Optional().Nillable().Immutable(),
		field.Enum("status").Values("running", "completed", "stopped").Default("running"),
		// Why it stopped early: webhook_disabled, not_subscribed or canceled.
		field.String("stopped_reason").Optional().Nillable(),
		// Deliveries that there are to replay, counted when the workflow begins.
		field.Int("total").Optional().Nillable(),
		field.Int("replayed").Default(0),
		// The last delivery that was looked at: where to go on.
		field.UUID("position", publicid.Delivery{}).Optional().Nillable(),
		field.Time("ended_at").Optional().Nillable(),
	}
}

// Edges of the entity.
func (Recovery) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("webhook", Webhook.Type).Field("webhook_id").Unique().Required().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

// Indexes of the entity.
func (Recovery) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("webhook_id", "id"),
		// At most one of a webhook runs.
		index.Fields("webhook_id").Unique().Annotations(entsql.IndexWhere("status = 'running'")),
		// What the sweep starts again, when nobody does it.
		index.Fields("created_at").Annotations(entsql.IndexWhere("status = 'running'")),
	}
}
