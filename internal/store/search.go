package store

import (
	"context"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5"

	"earshot/ent/db/comment"
	"earshot/ent/db/contact"
	"earshot/ent/db/post"
	"earshot/ent/db/predicate"
	"earshot/internal/publicid"
)

// Searches go by the documents that triggers keep beside posts and contacts, see
// ent/migrations. They find documents of all organizations; the rows that are
// returned are limited to the context's as everywhere.

// PostsWith are the posts that match a search: words, "phrases", -exclusions and
// or, by their stems in English.
func PostsWith(q string) predicate.Post { return postsIn(q, "") }

// PostsWithInTitle are those whose title matches by itself.
func PostsWithInTitle(q string) predicate.Post {
	return postsIn(q, " AND ts_filter(d.words, '{a}') @@ w.wanted")
}

// PostsWithNotInTitle are those whose title doesn't match by itself.
func PostsWithNotInTitle(q string) predicate.Post {
	return postsIn(q, " AND NOT ts_filter(d.words, '{a}') @@ w.wanted")
}

func postsIn(q, also string) predicate.Post {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			b.Ident(s.C(post.FieldID)).WriteString(" IN (SELECT d.post_id FROM post_documents d, websearch_to_tsquery('english', ").
				Arg(q).WriteString(") w(wanted) WHERE d.words @@ w.wanted" + also + ")")
		}))
	}
}

// ContactsWith are the contacts whose e-mail address or name holds a text, without
// regard to case.
func ContactsWith(q string) predicate.Contact {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			b.Ident(s.C(contact.FieldID)).WriteString(" IN (SELECT d.contact_id FROM contact_documents d WHERE d.grams @> search_grams(lower(").
				Arg(q).WriteString(")) AND position(lower(").Arg(q).WriteString(") IN d.document) > 0)")
		}))
	}
}

type freshPlanKey struct{}

// FreshPlan lets the database plan each query of the context for its own
// arguments. A list needs it, whose best plan depends on how much a filter finds;
// a plan that is kept, as for everything else, would know nothing of that.
func FreshPlan(ctx context.Context) context.Context {
	return context.WithValue(ctx, freshPlanKey{}, true)
}

// planner does what FreshPlan asks for.
type planner struct{ dialect.Driver }

// Query puts the mode before the arguments, where pgx looks for it.
func (p planner) Query(ctx context.Context, query string, args, v any) error {
	if given, ok := args.([]any); ok && ctx.Value(freshPlanKey{}) != nil {
		args = append([]any{pgx.QueryExecModeCacheDescribe}, given...)
	}
	return p.Driver.Query(ctx, query, args, v)
}

// CommentThread is the comment that a comment's thread began with, in SQL.
const CommentThread = `coalesce("comments"."parent_id", "comments"."id")`

// CommentsAfter are those behind a comment of a thread, in the order of threads
// and of comments in them.
func CommentsAfter(thread, last publicid.Comment) predicate.Comment {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			b.WriteString("(" + CommentThread + ", ").Ident(s.C(comment.FieldID)).
				WriteString(") > (").Arg(thread).WriteString(", ").Arg(last).WriteString(")")
		}))
	}
}

// ContactRevenue is what contacts are sorted by, in SQL: those without revenue
// come last.
const ContactRevenue = `coalesce("contacts"."mrr_cents", -1)`

// ContactsBefore are those behind a contact in the order of falling revenue.
func ContactsBefore(revenue int64, last publicid.Contact) predicate.Contact {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			b.WriteString("(" + ContactRevenue + ", ").Ident(s.C(contact.FieldID)).
				WriteString(") < (").Arg(revenue).WriteString(", ").Arg(last).WriteString(")")
		}))
	}
}
