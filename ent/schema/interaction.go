package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Interaction is a vote, post or comment of an end-user that waits for a confirmation by e-mail.
// The transaction that confirms it deletes the row. An unconfirmed row is deleted when it expires.
type Interaction struct{ ent.Schema }

// Mixin of the entity.
func (Interaction) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (Interaction) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Interaction{}).Default(publicid.NewInteraction).Immutable(),
		// SHA-256 of the token in the link. The token itself is not stored. It is derived from the id
		// and a key of the deployment when the link is sent.
		field.Bytes("token_hash").Immutable().Sensitive(),
		// HMAC of the normalised address. Exports and erasures find the row by it.
		field.Bytes("email_hash").Immutable(),
		// The visitor, the requested action and the text of the e-mail. They are sealed because they
		// contain the address and the name.
		field.Bytes("content_sealed").Immutable().Sensitive(),
		// When the workflow has work to do: immediately, and then at expires_at once the link is sent.
		field.Time("due_at").Default(now),
		field.Time("expires_at").Default(func() time.Time { return now().Add(24 * time.Hour) }).Immutable(),
	}
}

// Indexes of the entity.
func (Interaction) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("token_hash").Unique(),
		index.Fields("organization_id", "email_hash"),
		// The sweep restarts due interactions whose workflow was lost.
		index.Fields("due_at"),
	}
}
