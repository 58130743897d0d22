package store

import (
	"context"
	"fmt"
	"regexp"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"earshot/ent/db/contact"
	"earshot/ent/db/post"
	"earshot/ent/db/predicate"
	"earshot/internal/publicid"
)

// There are two ways to search:
//   - PostMatches and ContactMatches test each row of a list. This is quick for frequent words, which
//     the beginning of the list contains.
//   - PostsHolding and ContactsHolding ask the index. This is quick for rare words.
//
// The caller chooses between them, and not the planner. The planner assumes that the parts of a word
// are independent of each other, and may be wrong by a factor of a hundred.

// Part is the part of a post that has to contain the words of a search.
type Part int

// The parts of a post.
const (
	// TitleOrText is the title and the text together.
	TitleOrText Part = iota
	// Title is the title alone.
	Title
	// NotTitle is the title and the text together, if the title alone does not match.
	NotTitle
)

var conditions = map[Part]string{
	TitleOrText: "d.words @@ w.wanted",
	// An excluded word must be missing from the text, too.
	Title:    "d.title @@ w.wanted AND d.words @@ w.wanted",
	NotTitle: "d.words @@ w.wanted AND NOT d.title @@ w.wanted",
}

var (
	hyphens = regexp.MustCompile(`-{2,}`)
	// Postgres skips the characters between these hyphens and reads each hyphen as a NOT.
	exclusions = regexp.MustCompile(`-(?:[^\pL\pM\pN"-]+-)+`)
)

// searched is a search that websearch_to_tsquery can read. That function nests a NOT for each consecutive
// hyphen, and returns an error at the 33rd. A row of hyphens is a dash or a Markdown rule, so it excludes
// nothing. Several hyphens that exclude the same word become one.
func searched(q string) string {
	return exclusions.ReplaceAllString(hyphens.ReplaceAllString(q, " "), " -")
}

// The error of websearch_to_tsquery has no SQLSTATE of its own, only that of all internal errors. Postgres
// does not translate the messages of these.
const (
	internalError = "XX000"
	stackTooSmall = "tsquery stack too small"
)

// UnreadableSearch reports whether an error says that Postgres could not read the words of a search.
func UnreadableSearch(err error) bool {
	var failed *pgconn.PgError
	return errors.As(err, &failed) && failed.Code == internalError && failed.Message == stackTooSmall
}

// The words of a search go between these two. The subselect makes Postgres parse them once a statement.
const (
	wantedSQL    = "(SELECT (SELECT websearch_to_tsquery('english', searchable("
	wantedEndSQL = "))) AS wanted) w"
)

// PostMatches selects the posts that match words, "phrases", -exclusions and or, by their stems in
// English.
func PostMatches(q string, in Part) predicate.Post {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			// A subselect reads the document of one row by its key. The planner would reverse a join.
			b.WriteString("(SELECT " + conditions[in] + " FROM post_documents d, " + wantedSQL).
				Arg(searched(q)).WriteString(wantedEndSQL + " WHERE d.post_id = ").Ident(s.C(post.FieldID)).WriteString(")")
		}))
	}
}

// InTitle is the column that FirstFound adds to a post. TitlesFirst begins an order of posts with it.
const (
	InTitle     = "in_title"
	TitlesFirst = "posts." + InTitle + " DESC, "
)

// FirstFound selects the posts that match a search among the first n of a list. The column InTitle is
// true if the title alone matches.
func FirstFound[P ~func(*sql.Selector)](n int, of []P, order, q string) func(*sql.Selector) {
	return func(s *sql.Selector) {
		found := sql.Dialect(dialect.Postgres).SelectExpr(sql.Raw(s.TableName() + ".*, d." + InTitle)).From(sql.Table(s.TableName()))
		First(n, of, order)(found)
		// OFFSET 0 keeps the planner from reversing the join.
		found.AppendFromExpr(sql.ExprFunc(func(b *sql.Builder) {
			b.WriteString("LATERAL (SELECT d.title @@ w.wanted AS " + InTitle + " FROM post_documents d, " + wantedSQL).
				Arg(searched(q)).WriteString(wantedEndSQL + " WHERE d.post_id = posts.id AND " + conditions[TitleOrText] + " OFFSET 0) d")
		}))
		s.From(found.As(s.TableName()))
	}
}

// A document contains its board as a word. No text contains this word, because it has a space.
const postsHoldingSQL = `
WITH found AS MATERIALIZED (SELECT d.post_id FROM post_documents d, websearch_to_tsquery('english', searchable($1)) w(wanted)
WHERE numnode(w.wanted) > 0 AND %s AND d.%s @@ (w.wanted && ('''board ' || $2 || '''')::tsquery)
)
SELECT post_id FROM found LIMIT $3`

// PostsHolding asks the index for the posts of a board that match, in no order.
func (s *Store) PostsHolding(ctx context.Context, on publicid.Board, q string, in Part, limit int) ([]uuid.UUID, error) {
	column := "words"
	if in == Title {
		column = "title"
	}
	return s.holding(ctx, fmt.Sprintf(postsHoldingSQL, conditions[in], column), searched(q), on.UUID().String(), limit)
}

// ContactMatches selects the contacts whose e-mail address or name contains a text, without regard to
// case.
func ContactMatches(q string) predicate.Contact {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			b.WriteString("(position(lower(").Arg(q).WriteString(") IN lower(").Ident(s.C(contact.FieldEmail)).
				WriteString(")) > 0 OR position(lower(").Arg(q).WriteString(") IN lower(").Ident(s.C(contact.FieldName)).
				WriteString(")) > 0)")
		}))
	}
}

const contactsHoldingSQL = `
WITH found AS MATERIALIZED (SELECT contact_id FROM contact_documents WHERE grams @> search_grams(lower($1), $2::uuid))
SELECT contact_id FROM found LIMIT $3`

// ContactsHolding asks the index for the contacts of an organization that may
// match, in no order.
func (s *Store) ContactsHolding(ctx context.Context, of publicid.Organization, q string, limit int) ([]uuid.UUID, error) {
	return s.holding(ctx, contactsHoldingSQL, q, of.UUID().String(), limit)
}

func (s *Store) holding(ctx context.Context, query string, args ...any) ([]uuid.UUID, error) {
	rows, err := s.pool.Query(ctx, query, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
	if err != nil {
		return nil, errors.Wrap(err, "search")
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, errors.Wrap(err, "search")
	}
	return ids, nil
}

// OneOf selects the rows with these ids, of which there may be thousands. It takes the place of the
// table, so that Postgres looks the rows up by id before it checks other conditions. The planner
// overestimates how selective a cursor is, and would otherwise read the rest of the list.
func OneOf(ids []uuid.UUID) func(*sql.Selector) {
	return inPlaceOfTable(func(rows *sql.Selector) {
		rows.Where(sql.P(func(b *sql.Builder) {
			b.Ident(rows.C("id")).WriteString(" = ANY (").Arg(ids).WriteString("::uuid[])")
		}))
		// OFFSET 0 keeps the planner from merging it with the outer query.
		rows.Offset(0)
	})
}

// First selects the first n rows of a list: of the rows that match all predicates, in the order of the
// list. It takes the place of the table, so that Postgres reads the list in order and only as far as a
// query needs.
func First[P ~func(*sql.Selector)](n int, of []P, order string) func(*sql.Selector) {
	return inPlaceOfTable(func(rows *sql.Selector) {
		for _, p := range of {
			p(rows)
		}
		rows.OrderExpr(sql.Expr(order)).Limit(n)
	})
}

func inPlaceOfTable(choose func(rows *sql.Selector)) func(*sql.Selector) {
	return func(s *sql.Selector) {
		rows := sql.Dialect(dialect.Postgres).Select().From(sql.Table(s.TableName()))
		choose(rows)
		s.From(rows.As(s.TableName()))
	}
}

// Comments are ordered by thread, and the first comment of a thread comes before its replies. A clock
// that gave a reply a smaller id does not change that.
const commentPlace = `coalesce(comments.parent_id, comments.id), (comments.parent_id IS NOT NULL), comments.id`

// ByThread is the order of comments by thread.
const ByThread = commentPlace

// CommentsAfter selects the comments that follow a comment of a thread in the order of ByThread.
func CommentsAfter(thread, last publicid.Comment) predicate.Comment {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			b.WriteString("(" + commentPlace + ") > (").
				Arg(thread).WriteString(", ").Arg(last != thread).WriteString(", ").Arg(last).WriteString(")")
		}))
	}
}

// contactRevenue is the first sort key of contacts. Contacts without revenue come last.
const contactRevenue = `coalesce(contacts.mrr_cents, -1)`

// ByRevenue is the order of contacts by falling revenue.
const ByRevenue = contactRevenue + ` DESC, contacts.id DESC`

// ContactsBefore selects the contacts that follow a contact in the order of falling revenue.
func ContactsBefore(revenue int64, last publicid.Contact) predicate.Contact {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			b.WriteString("(" + contactRevenue + ", ").Ident(s.C(contact.FieldID)).
				WriteString(") < (").Arg(revenue).WriteString(", ").Arg(last).WriteString(")")
		}))
	}
}

// freshPlans is the driver of Lists. Postgres plans each of its queries for the arguments.
type freshPlans struct{ *sql.Driver }

// Query puts the mode before the arguments, where pgx looks for it.
func (p freshPlans) Query(ctx context.Context, query string, args, v any) error {
	if given, ok := args.([]any); ok {
		args = append([]any{pgx.QueryExecModeCacheDescribe}, given...)
	}
	return p.Driver.Query(ctx, query, args, v)
}
