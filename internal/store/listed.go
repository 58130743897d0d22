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

// ListedPost has its tags, oldest first. After a search (FirstFound), InTitle reports whether
// the title matches. In a list by revenue (PaidFor), Revenue is the post's revenue.
type ListedPost struct {
	db.Post
	Extent
	TagIDs  []publicid.Tag `json:"tag_ids"`
	InTitle bool           `json:"in_title"`
	Revenue int64          `json:"revenue"`
}

// ListedContact is a contact.
type ListedContact struct {
	db.Contact
	Extent
}

// ListedComment is a comment.
type ListedComment struct {
	db.Comment
	Extent
}

// ListedEvent is an event.
type ListedEvent struct {
	db.Event
	Extent
}

// ListedSubjectRecord is a record of a personal data export.
type ListedSubjectRecord struct {
	db.SubjectRecord
	Extent
	// Sealed replaces the entity's field, which Ent leaves out of JSON.
	Sealed []byte `json:"sealed"`
}

// ListedSubmission is a submission without the personal data.
type ListedSubmission struct {
	db.Submission
	Extent
}

// ListedEntry is a changelog entry.
type ListedEntry struct {
	db.ChangelogEntry
	Extent
}

// PostPages reads pages of posts. The foreign keys guarantee that the tags of a post belong to its organization.
var PostPages = newPageReader[ListedPost, predicate.Post](db.TypePost, post.Table, post.Columns, []string{post.FieldBodyText, post.FieldBodyJSON},
	expression{"tag_ids", "ARRAY(SELECT tag_id FROM post_tags WHERE post_tags.post_id = posts.id ORDER BY tag_id)"})

// ContactPages reads pages of contacts.
var ContactPages = newPageReader[ListedContact, predicate.Contact](db.TypeContact, contact.Table, contact.Columns, []string{contact.FieldMetadata})

// CommentPages reads pages of comments.
var CommentPages = newPageReader[ListedComment, predicate.Comment](db.TypeComment, comment.Table, comment.Columns,
	[]string{comment.FieldBodyText, comment.FieldBodyJSON})

// EventPages reads pages of events.
var EventPages = newPageReader[ListedEvent, predicate.Event](db.TypeEvent, event.Table, event.Columns, []string{event.FieldPayload})

// SubjectRecordPages reads pages of the records of an export.
var SubjectRecordPages = newPageReader[ListedSubjectRecord, predicate.SubjectRecord](db.TypeSubjectRecord, subjectrecord.Table,
	subjectrecord.Columns, []string{subjectrecord.FieldSealed})

// SubmissionPages reads pages of submissions without the personal data.
var SubmissionPages = newPageReader[ListedSubmission, predicate.Submission](db.TypeSubmission, submission.Table,
	slices.DeleteFunc(slices.Clone(submission.Columns), func(column string) bool { return column == submission.FieldPersonSealed }),
	[]string{submission.FieldBodyText})

// EntryPages reads pages of changelog entries.
var EntryPages = newPageReader[ListedEntry, predicate.ChangelogEntry](db.TypeChangelogEntry, changelogentry.Table, changelogentry.Columns,
	[]string{changelogentry.FieldBodyText, changelogentry.FieldBodyJSON})

// Falling is an ORDER BY clause by columns of a table, largest first.
func Falling(table string, columns ...string) string {
	terms := make([]string, len(columns))
	for i, column := range columns {
		terms[i] = table + "." + column + " DESC"
	}
	return strings.Join(terms, ", ")
}

// mostAlongBoard is the size of the largest page plus one row, which shows that there is a next
// page.
const mostAlongBoard = 101

// AlongBoard lists the live posts of a board, ordered by the given columns, largest first. The list
// starts after the given values, or at the beginning without values.
//
// Postgres keeps the plan of the statement, and that plan is the best one for every board. The
// conditions are a range of the index that begins with the board and continues with the columns,
// and no other index has that order. With an equality, or with a condition on the organization, the
// planner would sometimes expect few posts and sort them all.
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

// lessThanSelected is the condition that a row of columns is less than the values. The values are
// selected, like the arrays in seeSQL, so that Postgres keeps one plan for all of them.
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

// typeOf is the Postgres type of a value that a list is ordered by.
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
