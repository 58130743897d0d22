package store

import (
	"slices"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"

	"earshot/ent/db"
	"earshot/ent/db/changelogentry"
	"earshot/ent/db/comment"
	"earshot/ent/db/contact"
	"earshot/ent/db/event"
	"earshot/ent/db/post"
	"earshot/ent/db/predicate"
	"earshot/ent/db/subjectrecord"
	"earshot/ent/db/submission"
	"earshot/internal/publicid"
)

// What pages are read of, and the readers.
type (
	// ListedPost has its tags, oldest first, and says where a search looked (FirstFound)
	// whether its title matches, or a list by revenue (PaidFor) what that is.
	ListedPost struct {
		db.Post
		Extent
		TagIDs  []publicid.Tag `json:"tag_ids"`
		InTitle bool           `json:"in_title"`
		Revenue int64          `json:"revenue"`
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
	// ListedEvent is an event.
	ListedEvent struct {
		db.Event
		Extent
	}
	// ListedSubjectRecord is a record of an export.
	ListedSubjectRecord struct {
		db.SubjectRecord
		Extent
		// Sealed takes the place of the entity's, which Ent shows to nobody by its name.
		Sealed []byte `json:"sealed"`
	}
	// ListedSubmission is a submission, without the person.
	ListedSubmission struct {
		db.Submission
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
	EventPages         = newPageReader[ListedEvent, predicate.Event](db.TypeEvent, event.Table, event.Columns, []string{event.FieldPayload})
	SubjectRecordPages = newPageReader[ListedSubjectRecord, predicate.SubjectRecord](db.TypeSubjectRecord, subjectrecord.Table,
		subjectrecord.Columns, []string{subjectrecord.FieldSealed})
	SubmissionPages = newPageReader[ListedSubmission, predicate.Submission](db.TypeSubmission, submission.Table,
		slices.DeleteFunc(slices.Clone(submission.Columns), func(column string) bool { return column == submission.FieldPersonSealed }),
		[]string{submission.FieldBodyText})
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

// mostAlongBoard is the largest page, and the row that says that there is another.
const mostAlongBoard = 101

// AlongBoard is the list of a board's live posts by further columns, all falling, behind
// the place of such values; without values it is from its beginning.
//
// Its plan is kept, and is the best one for any board: the posts are asked for as a range of
// the index that begins with the board and goes on with the columns, and no other index
// gives them in that order. With equal signs, or beside a condition on the organization, the
// database would take posts for so few in some tables that it sorted them all.
func AlongBoard(on publicid.Board, by []string, behind []any) PageOf[predicate.Post] {
	columns := append([]string{post.FieldBoardID}, by...)
	return PageOf[predicate.Post]{
		Order: Falling(post.Table, columns...), alongBoard: &on,
		Where: []predicate.Post{post.DeletedAtIsNil(), func(s *sql.Selector) {
			s.Where(sql.GTE(s.C(post.FieldBoardID), on)).Where(sql.LTE(s.C(post.FieldBoardID), on))
			if behind != nil {
				s.Where(lessThanSelected(s.Columns(columns...), append([]any{on}, behind...)))
			}
		}},
	}
}

// lessThanSelected says that columns, together, are less than values. These are selected, as
// arrays are in seeSQL, so that one plan is kept for all of them.
func lessThanSelected(columns []string, values []any) *sql.Predicate {
	return sql.P(func(b *sql.Builder) {
		b.Wrap(func(b *sql.Builder) { b.IdentComma(columns...) }).WriteString(" < ").Wrap(func(b *sql.Builder) {
			for i, value := range values {
				if i > 0 {
					b.Comma()
				}
				b.WriteString("(SELECT ").Arg(value).WriteString("::" + typeOf(value) + ")")
			}
		})
	})
}

// typeOf is the database's type of what a list goes by.
func typeOf(value any) string {
	switch value.(type) {
	case int64:
		return "bigint"
	case time.Time:
		return "timestamptz"
	default: // an id
		return "uuid"
	}
}
