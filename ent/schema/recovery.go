package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Recovery replays a webhook's permanently failed deliveries of a time window. Callers read the
// progress from the row. The workflow with the same id does the work.
type Recovery struct{ ent.Schema }

// Mixin of the entity.
func (Recovery) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (Recovery) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Recovery{}).Default(publicid.NewRecovery).Immutable(),
		field.UUID("webhook_id", publicid.Webhook{}).Immutable(),
		// The window of creation times of the deliveries. It includes since and excludes until.
		field.Time("since").Immutable(),
		field.Time("until").Immutable(),
		// Null means all events that the webhook subscribes to.
		field.String("event_type").Optional().Nillable().Immutable(),
		field.Enum("status").Values("running", "completed", "stopped").Default("running"),
		// The reason for an early stop: webhook_disabled, not_subscribed or canceled.
		field.String("stopped_reason").Optional().Nillable(),
		// The number of deliveries to replay, counted when the workflow begins.
		field.Int("total").Optional().Nillable(),
		field.Int("replayed").Default(0),
		// The last processed delivery. The workflow continues after it.
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
		// A webhook has at most one running recovery.
		index.Fields("webhook_id").Unique().Annotations(entsql.IndexWhere("status = 'running'")),
		// The sweep restarts running recoveries whose workflow was lost.
		index.Fields("created_at").Annotations(entsql.IndexWhere("status = 'running'")),
	}
}
