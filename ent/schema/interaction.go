package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Interaction is a vote, post or comment of an end-user that waits for a confirmation by e-mail.
// Its row goes when it counts, in the same transaction, or when its time is up.
type Interaction struct{ ent.Schema }

// Mixin of the entity.
func (Interaction) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (Interaction) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Interaction{}).Default(publicid.NewInteraction).Immutable(),
		// SHA-256 of the token in the link. The token itself is nowhere: it is made again of the
		// id, by a key of the deployment, when the link is sent.
		field.Bytes("token_hash").Immutable().Sensitive(),
		// HMAC of the normalised address, by which what is kept of a person is found.
		field.Bytes("email_hash").Immutable(),
		// Who wants what, and the words of the e-mail, sealed: the address and the name are in it.
		field.Bytes("content_sealed").Immutable().Sensitive(),
		// When somebody has to look after it: at once, and when its time is up once the link is sent.
		field.Time("due_at").Default(now),
		field.Time("expires_at").Default(func() time.Time { return now().Add(24 * time.Hour) }).Immutable(),
	}
}

// Indexes of the entity.
func (Interaction) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("token_hash").Unique(),
		index.Fields("organization_id", "email_hash"),
		// What the sweep starts again, when nobody does it.
		index.Fields("due_at"),
	}
}
