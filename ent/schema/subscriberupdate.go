package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"earshot/internal/publicid"
)

// SubscriberUpdate is a change to announce to end-users by e-mail: a post with a new status, or a
// published changelog entry. It has no digest until its window ends. Then it waits until the
// digest's e-mails are sent. The row is the outbox of the workflow.
type SubscriberUpdate struct{ ent.Schema }

// Mixin of the entity.
func (SubscriberUpdate) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (SubscriberUpdate) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.SubscriberUpdate{}).Default(publicid.NewSubscriberUpdate).Immutable(),
		// Exactly one of the two is set.
		field.UUID("post_id", publicid.Post{}).Optional().Nillable().Immutable(),
		field.UUID("entry_id", publicid.ChangelogEntry{}).Optional().Nillable().Immutable(),
		// The post's status before the change, and its status at the end of the window.
		field.String("previous_status").Optional().Nillable().Immutable(),
		field.String("status").Optional().Nillable(),
		// The digest that announces the update. Null until the window ends.
		field.UUID("digest_id", uuid.UUID{}).Optional().Nillable(),
	}
}

// Indexes of the entity.
func (SubscriberUpdate) Indexes() []ent.Index {
	waiting := entsql.IndexWhere("digest_id IS NULL")
	return []ent.Index{
		index.Fields("organization_id", "created_at").Annotations(waiting),
		// The sweep finds waiting updates with it.
		index.Fields("created_at").Annotations(waiting),
		index.Fields("digest_id", "post_id").Annotations(entsql.IndexWhere("digest_id IS NOT NULL")),
	}
}
