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
		// Other members who may know the key: the member who created it for this user, and the members
		// who may know the key that was used to create it. Null if there are none, as for a key that
		// was created on the command line.
		field.JSON("created_by", []publicid.User{}).Optional().Immutable(),
		// The key of the request that created or rotated this key. Null if the operator created it.
		field.UUID("created_by_key_id", publicid.APIKey{}).Optional().Nillable().Immutable(),
		field.String("name"),
		// SHA-256 of the key. A slow hash would add nothing: the key carries
		// over 200 bits of randomness.
		field.Bytes("hash").Immutable().Sensitive(),
		// The first characters of the key, by which people recognise it.
		field.String("prefix").Immutable(),
		field.Enum("scope").NamedValues("Read", "read", "ReadWrite", "read:write").Immutable(),
		// Requests a minute. Null means the deployment's default.
		field.Int("rate_limit").Optional().Nillable(),
		field.Time("expires_at").Optional().Nillable(),
		// Set on a rotated key: the end of the overlap with its successor. The lifetime of the
		// successor is derived from expires_at.
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
