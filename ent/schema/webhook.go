package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Webhook is an endpoint that receives events.
type Webhook struct{ ent.Schema }

// Mixin of the entity.
func (Webhook) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, times{}} }

// Fields of the entity.
func (Webhook) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Webhook{}).Default(publicid.NewWebhook).Immutable(),
		// Scheme, host and port of the URL, which operators may see. Rows from releases without
		// url_sealed hold the whole URL here until `earshot secrets rotate` runs.
		field.String("url"),
		// The whole URL, sealed because its path and query may contain tokens.
		field.Bytes("url_sealed").Optional().Sensitive(),
		field.Strings("events"),
		// Notes of the owner. Null metadata means no keys.
		field.String("description").Optional().Nillable(),
		field.JSON("metadata", map[string]string{}).Optional().SchemaType(jsonText),
		// The throttle: the maximum number of attempts that begin within a second. Its token bucket is a row
		// of webhook_throttles (internal/delivery/throttle_sql.go), a table outside of Ent.
		field.Int("max_per_second").Optional().Nillable(),
		field.Bool("enabled").Default(true),
		// The signing secret, sealed. The sealed bytes contain the name of the sealing key. The
		// generated columns secret_key_id and url_key_id show that name, so they are always correct.
		field.Bytes("secret_sealed").Sensitive(),
		// The previous signing secret, also sealed. Attempts carry a second signature with it until
		// former_secret_until. Then the retention removes it.
		field.Bytes("former_secret_sealed").Optional().Sensitive(),
		field.Time("former_secret_until").Optional().Nillable(),
		field.Time("disabled_at").Optional().Nillable(),
		// Set when the webhook was deleted. The API hides it, and the retention removes its rows and
		// then the webhook itself. It is also disabled, for releases that do not know this column.
		field.Time("deleted_at").Optional().Nillable(),
		// The cause of the disabling: a request of the owner, or 50 failures in a row.
		field.Enum("disabled_reason").Values("requested", "failures").Optional().Nillable(),
		// The failure streak: permanently failed deliveries since the last success, or since the
		// webhook was enabled. Successes of a healthy webhook never write it.
		field.Int("consecutive_failures").Default(0),
		// The workflow run that disabled the webhook last. After a kill the run can repeat its request
		// and get the same answer.
		field.String("disabled_by_run").Optional().Nillable(),
	}
}

// Indexes of the entity.
func (Webhook) Indexes() []ent.Index {
	return []ent.Index{
		// The retention finds deleted webhooks with it.
		index.Fields("id").StorageKey("webhook_deleted").Annotations(entsql.IndexWhere("deleted_at IS NOT NULL")),
		// The sweep finds failure streaks that no workflow follows.
		index.Fields("consecutive_failures").Annotations(entsql.IndexWhere("consecutive_failures > 0")),
	}
}
