package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// APIKey is a credential of the REST API. The key itself is never stored.
type APIKey struct{ ent.Schema }

// Mixin of the entity.
func (APIKey) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (APIKey) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.APIKey{}).Default(publicid.NewAPIKey).Immutable(),
		field.UUID("user_id", publicid.User{}).Immutable(),
		// The other members who may know the key: who made it for this one, and who made the key that
		// was used for it. Null where there is none, as in a key from the command line.
		field.JSON("created_by", []publicid.User{}).Optional().Immutable(),
		field.String("name"),
		// SHA-256 of the key. A slow hash would add nothing: the key carries
		// over 200 bits of randomness.
		field.Bytes("hash").Immutable().Sensitive(),
		// The first characters, so that a person can tell keys apart.
		field.String("prefix").Immutable(),
		field.Enum("scope").NamedValues("Read", "read", "ReadWrite", "read:write").Immutable(),
		// Requests a minute; null takes the deployment's default.
		field.Int("rate_limit").Optional().Nillable(),
		field.Time("expires_at").Optional().Nillable(),
		// The end of the overlap, of a key that was rotated. It isn't expires_at,
		// which says how long a life the next one gets.
		field.Time("superseded_at").Optional().Nillable(),
		field.Time("revoked_at").Optional().Nillable(),
		field.Time("last_used_at").Optional().Nillable(),
	}
}

// Edges of the entity.
func (APIKey) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("user", User.Type).Field("user_id").Unique().Required().Immutable(),
	}
}

// Indexes of the entity.
func (APIKey) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("hash").Unique(),
		index.Fields("organization_id", "created_at"),
	}
}
