package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"earshot/internal/publicid"
)

// SubscriberUpdate is something that end-users are to be told of by e-mail: a post that has another
// status, or a changelog entry that was published. It waits for the end of its window without a
// digest, and then for the digest's e-mails to be sent. It is the outbox of the workflow.
type SubscriberUpdate struct{ ent.Schema }

// Mixin of the entity.
func (SubscriberUpdate) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (SubscriberUpdate) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.SubscriberUpdate{}).Default(publicid.NewSubscriberUpdate).Immutable(),
		// One of the two.
		field.UUID("post_id", publicid.Post{}).Optional().Nillable().Immutable(),
		field.UUID("entry_id", publicid.ChangelogEntry{}).Optional().Nillable().Immutable(),
		// What the post's status was, and what it was when the window ended.
		field.String("previous_status").Optional().Nillable().Immutable(),
		field.String("status").Optional().Nillable(),
		// What was told together with it, once its window has ended.
		field.UUID("digest_id", uuid.UUID{}).Optional().Nillable(),
	}
}

// Indexes of the entity.
func (SubscriberUpdate) Indexes() []ent.Index {
	waiting := entsql.IndexWhere("digest_id IS NULL")
	return []ent.Index{
		index.Fields("organization_id", "created_at").Annotations(waiting),
		// What the sweep looks for.
		index.Fields("created_at").Annotations(waiting),
		index.Fields("digest_id", "post_id").Annotations(entsql.IndexWhere("digest_id IS NOT NULL")),
	}
}
