package store

import (
	"strings"

	"earshot/ent/db"
	"earshot/ent/db/changelogentry"
	"earshot/ent/db/comment"
	"earshot/ent/db/contact"
	"earshot/ent/db/post"
	"earshot/ent/db/predicate"
	"earshot/internal/publicid"
)

// What pages are read of, and the readers.
type (
	// ListedPost has its tags, oldest first, and says where a search looked (FirstFound)
	// whether its title matches.
	ListedPost struct {
		db.Post
		Extent
		TagIDs  []publicid.Tag `json:"tag_ids"`
		InTitle bool           `json:"in_title"`
	}
	// ListedContact is a contact.
	ListedContact struct {
		db.Contact
		Extent
	}
	// ListedComment is a comment.
	ListedComment struct {
		db.Comment
		Extent
	}
	// ListedEntry is an entry of the changelog.
	ListedEntry struct {
		db.ChangelogEntry
		Extent
	}
)

// The readers. A post's tags are of its organization because the foreign keys say so.
var (
	PostPages = newPageReader[ListedPost, predicate.Post](db.TypePost, post.Table, post.Columns, []string{post.FieldBodyText, post.FieldBodyJSON},
		expression{"tag_ids", "ARRAY(SELECT tag_id FROM post_tags WHERE post_tags.post_id = posts.id ORDER BY tag_id)"})
	ContactPages = newPageReader[ListedContact, predicate.Contact](db.TypeContact, contact.Table, contact.Columns, []string{contact.FieldMetadata})
	CommentPages = newPageReader[ListedComment, predicate.Comment](db.TypeComment, comment.Table, comment.Columns,
		[]string{comment.FieldBodyText, comment.FieldBodyJSON})
	EntryPages = newPageReader[ListedEntry, predicate.ChangelogEntry](db.TypeChangelogEntry, changelogentry.Table, changelogentry.Columns,
		[]string{changelogentry.FieldBodyText, changelogentry.FieldBodyJSON})
)

// Falling is an order by columns of a table, largest first.
func Falling(table string, columns ...string) string {
	terms := make([]string, len(columns))
	for i, column := range columns {
		terms[i] = table + "." + column + " DESC"
	}
	return strings.Join(terms, ", ")
}
