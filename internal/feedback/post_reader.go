package feedback

import (
	"earshot/ent/db"
	"earshot/ent/db/post"
	"earshot/ent/db/predicate"
	"earshot/internal/page"
	"earshot/internal/publicid"
)

// listedPost has its tags, oldest first. After a search (FirstFound), InTitle reports whether
// the title matches. In a list by revenue (PaidFor), Revenue is the post's revenue.
type listedPost struct {
	db.Post
	page.Extent
	TagIDs  []publicid.Tag `json:"tag_ids"`
	InTitle bool           `json:"in_title"`
	Revenue int64          `json:"revenue"`
}

// PostPages reads pages of posts. The foreign keys guarantee that the tags of a post belong to its organization.
var PostPages = page.NewReader[listedPost, predicate.Post](post.Table, post.Columns, []string{post.FieldBodyText, post.FieldBodyJSON},
	page.Expression{Column: "tag_ids", SQL: "ARRAY(SELECT tag_id FROM post_tags WHERE post_tags.post_id = posts.id ORDER BY tag_id)"})
