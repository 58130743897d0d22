package feedback

import (
	"earshot/ent/db"
	"earshot/ent/db/comment"
	"earshot/ent/db/predicate"
	"earshot/internal/page"
)

// listedComment is a comment.
type listedComment struct {
	db.Comment
	page.Extent
}

// commentPages reads pages of comments.
var commentPages = page.NewReader[listedComment, predicate.Comment](comment.Table, comment.Columns,
	[]string{comment.FieldBodyText, comment.FieldBodyJSON})
