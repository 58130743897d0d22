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

// A search is asked in two ways. PostMatches and ContactMatches look at one row,
// which is quick where what is searched is frequent and the list begins with it.
// PostsHolding and ContactsHolding ask the index, which is quick where it is rare.
// Which of them a list needs isn't left to the planner: it takes the parts of a
// word for independent of each other, and errs by a factor of a hundred.

// Part says where the words of a search have to stand.
type Part int

// The parts of a post.
const (
	// TitleOrText is anywhere, between them.
	TitleOrText Part = iota
	// Title is the title by itself.
	Title
	// NotTitle is anywhere, but not the title by itself.
	NotTitle
)

var conditions = map[Part]string{
	TitleOrText: "d.words @@ w.wanted",
	// An exclusion is about the text, too.
	Title:    "d.title @@ w.wanted AND d.words @@ w.wanted",
	NotTitle: "d.words @@ w.wanted AND NOT d.title @@ w.wanted",
}

var (
	hyphens = regexp.MustCompile(`-{2,}`)
	// Postgres skips what stands between these hyphens, and takes each of them for a NOT.
	exclusions = regexp.MustCompile(`-(?:[^\pL\pM\pN"-]+-)+`)
)

// searched is a search that websearch_to_tsquery can read. It stacks one NOT on the other for consecutive
// hyphens, and returns an error at the 33rd. A row of hyphens is a dash here, or a rule of Markdown, and
// excludes nothing; of several exclusions of the same word one counts.
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

// What is wanted, worked out once for a statement, goes between the two.
const (
	wantedSQL    = "(SELECT (SELECT websearch_to_tsquery('english', searchable("
	wantedEndSQL = "))) AS wanted) w"
)

// PostMatches are the posts that match words, "phrases", -exclusions and or, by
// their stems in English.
func PostMatches(q string, in Part) predicate.Post {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			// One row's document by its key, and not a join, which the planner
			// would turn round.
			b.WriteString("(SELECT " + conditions[in] + " FROM post_documents d, " + wantedSQL).
				Arg(searched(q)).WriteString(wantedEndSQL + " WHERE d.post_id = ").Ident(s.C(post.FieldID)).WriteString(")")
		}))
	}
}

// What FirstFound adds to a post, and how posts are ordered by it first.
const (
	InTitle     = "in_title"
	TitlesFirst = "posts." + InTitle + " DESC, "
)

// FirstFound are those of the first n posts of a list that match a search. Each says
// whether its title does by itself.
func FirstFound[P ~func(*sql.Selector)](n int, of []P, order, q string) func(*sql.Selector) {
	return func(s *sql.Selector) {
		found := sql.Dialect(dialect.Postgres).SelectExpr(sql.Raw(s.TableName() + ".*, d." + InTitle)).From(sql.Table(s.TableName()))
		First(n, of, order)(found)
		// Skipping none keeps the planner from turning the join round.
		found.AppendFromExpr(sql.ExprFunc(func(b *sql.Builder) {
			b.WriteString("LATERAL (SELECT d.title @@ w.wanted AS " + InTitle + " FROM post_documents d, " + wantedSQL).
				Arg(searched(q)).WriteString(wantedEndSQL + " WHERE d.post_id = posts.id AND " + conditions[TitleOrText] + " OFFSET 0) d")
		}))
		s.From(found.As(s.TableName()))
	}
}

// A document holds its board as a word that no text has, because of the blank.
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

// ContactMatches are the contacts whose e-mail address or name holds a text,
// without regard to case.
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

// OneOf are the rows of the ids, of which there may be thousands. It takes the place of
// the table, so that they are looked up by their ids before anything else is asked of
// them: the planner takes a cursor for far more selective than it is, and would rather
// go through what is left of the list.
func OneOf(ids []uuid.UUID) func(*sql.Selector) {
	return inPlaceOfTable(func(rows *sql.Selector) {
		rows.Where(sql.P(func(b *sql.Builder) {
			b.Ident(rows.C("id")).WriteString(" = ANY (").Arg(ids).WriteString("::uuid[])")
		}))
		// Skipping none keeps the planner from merging it with the query around it.
		rows.Offset(0)
	})
}

// First are the first n rows of a list: of those that all the predicates hold of,
// in its order. It takes the place of the table, so that the list is read in order
// and only as far as a query needs.
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

// The order of comments: by the comment that the thread began with, that one
// first, whatever the clocks said that the ids are made by.
const commentPlace = `coalesce(comments.parent_id, comments.id), (comments.parent_id IS NOT NULL), comments.id`

// ByThread is that order.
const ByThread = commentPlace

// CommentsAfter are those behind a comment of a thread in that order.
func CommentsAfter(thread, last publicid.Comment) predicate.Comment {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			b.WriteString("(" + commentPlace + ") > (").
				Arg(thread).WriteString(", ").Arg(last != thread).WriteString(", ").Arg(last).WriteString(")")
		}))
	}
}

// What contacts are sorted by: those without revenue come last.
const contactRevenue = `coalesce(contacts.mrr_cents, -1)`

// ByRevenue is the order of contacts by falling revenue.
const ByRevenue = contactRevenue + ` DESC, contacts.id DESC`

// ContactsBefore are those behind a contact in the order of falling revenue.
func ContactsBefore(revenue int64, last publicid.Contact) predicate.Contact {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			b.WriteString("(" + contactRevenue + ", ").Ident(s.C(contact.FieldID)).
				WriteString(") < (").Arg(revenue).WriteString(", ").Arg(last).WriteString(")")
		}))
	}
}

// freshPlans is the driver of Lists.
type freshPlans struct{ *sql.Driver }

// Query puts the mode before the arguments, where pgx looks for it.
func (p freshPlans) Query(ctx context.Context, query string, args, v any) error {
	if given, ok := args.([]any); ok {
		args = append([]any{pgx.QueryExecModeCacheDescribe}, given...)
	}
	return p.Driver.Query(ctx, query, args, v)
}
