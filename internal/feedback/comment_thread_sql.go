package feedback

import (
	"entgo.io/ent/dialect/sql"

	"earshot/ent/db/predicate"
	"earshot/internal/publicid"
)

// Comments are ordered by thread, and the first comment of a thread comes before its replies. A clock
// that gave a reply a smaller id does not change that.
const commentPlace = `coalesce(comments.parent_id, comments.id), (comments.parent_id IS NOT NULL), comments.id`

// byThread is the order of comments by thread.
const byThread = commentPlace

// commentsAfter selects the comments that follow a comment of a thread in the order of ByThread.
func commentsAfter(thread, last publicid.Comment) predicate.Comment {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			b.WriteString("(" + commentPlace + ") > (").
				Arg(thread).WriteString(", ").Arg(last != thread).WriteString(", ").Arg(last).WriteString(")")
		}))
	}
}
