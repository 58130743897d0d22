package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Webhook is an endpoint that wants to be told of events.
type Webhook struct{ ent.Schema }

// Mixin of the entity.
func (Webhook) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, times{}} }

// Fields of the entity.
func (Webhook) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Webhook{}).Default(publicid.NewWebhook).Immutable(),
		// Scheme, host and port of the URL, which operators may see. A row from before
		// url_sealed has the whole URL here until `earshot secrets rotate`.
		field.String("url"),
		// The whole URL, sealed: path and query may hold tokens.
		field.Bytes("url_sealed").Optional().Sensitive(),
		field.Strings("events"),
		// What its owner says about it. Null metadata has no keys.
		field.String("description").Optional().Nillable(),
		field.JSON("metadata", map[string]string{}).Optional().SchemaType(jsonText),
		// The throttle: attempts that may begin within a second. Its bucket is a row of
		// webhook_throttles (internal/store/throttle.go), which Ent doesn't know.
		field.Int("max_per_second").Optional().Nillable(),
		field.Bool("enabled").Default(true),
		// The signing secret, sealed. The sealing key's name is part of what is sealed,
		// and the migration shows it as secret_key_id and url_key_id, which Postgres
		// generates, so that they can't say anything else.
		field.Bytes("secret_sealed").Sensitive(),
		// The signing secret before it, sealed alike, and until when attempts are signed with
		// it, too. The retention forgets it then.
		field.Bytes("former_secret_sealed").Optional().Sensitive(),
		field.Time("former_secret_until").Optional().Nillable(),
		field.Time("disabled_at").Optional().Nillable(),
		// Set when it was deleted: then it is there for nobody, and the retention removes its
		// rows and then its own. It is disabled too, for programs that don't know this column.
		field.Time("deleted_at").Optional().Nillable(),
		// Who disabled it: its owner, or the 50 failures.
		field.Enum("disabled_reason").Values("requested", "failures").Optional().Nillable(),
		// The streak: deliveries that failed for good since the last success, or
		// since the webhook was enabled. A webhook that is well never writes it.
		field.Int("consecutive_failures").Default(0),
		// The workflow run that disabled it last, so that the run can ask again
		// after a kill and get the same answer.
		field.String("disabled_by_run").Optional().Nillable(),
	}
}

// Indexes of the entity.
func (Webhook) Indexes() []ent.Index {
	return []ent.Index{
		// The sweep looks for streaks that nobody follows.
		index.Fields("id").StorageKey("webhook_deleted").Annotations(entsql.IndexWhere("deleted_at IS NOT NULL")),
		index.Fields("consecutive_failures").Annotations(entsql.IndexWhere("consecutive_failures > 0")),
	}
}
