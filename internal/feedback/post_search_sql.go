package feedback

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"

	"earshot/ent/db/post"
	"earshot/ent/db/predicate"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// There are two ways to search:
//   - PostMatches and ContactMatches test each row of a list. This is quick for frequent words, which
//     the beginning of the list contains.
//   - PostsHolding and ContactsHolding ask the index. This is quick for rare words.
//
// The caller chooses between them, and not the planner. The planner assumes that the parts of a word
// are independent of each other, and may be wrong by a factor of a hundred.

// part is the part of a post that has to contain the words of a search.
type part int

// The parts of a post.
const (
	// TitleOrText is the title and the text together.
	TitleOrText part = iota
	// Title is the title alone.
	title
	// NotTitle is the title and the text together, if the title alone does not match.
	notTitle
)

var conditions = map[part]string{
	TitleOrText: "d.words @@ w.wanted",
	// An excluded word must be missing from the text, too.
	title:    "d.title @@ w.wanted AND d.words @@ w.wanted",
	notTitle: "d.words @@ w.wanted AND NOT d.title @@ w.wanted",
}

// postMatches selects the posts that match words, "phrases", -exclusions and or, by their stems in
// English.
func postMatches(q string, in part) predicate.Post {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			// A subselect reads the document of one row by its key. The planner would reverse a join.
			b.WriteString("(SELECT " + conditions[in] + " FROM post_documents d, " + page.WantedSQL).
				Arg(page.Searched(q)).WriteString(page.WantedEndSQL + " WHERE d.post_id = ").Ident(s.C(post.FieldID)).WriteString(")")
		}))
	}
}

// InTitle is the column that FirstFound adds to a post. TitlesFirst begins an order of posts with it.
const (
	inTitle     = "in_title"
	titlesFirst = "posts." + inTitle + " DESC, "
)

// firstFound selects the posts that match a search among the first n of a list. The column InTitle is
// true if the title alone matches.
func firstFound[P ~func(*sql.Selector)](n int, of []P, order, q string) func(*sql.Selector) {
	return func(s *sql.Selector) {
		found := sql.Dialect(dialect.Postgres).SelectExpr(sql.Raw(s.TableName() + ".*, d." + inTitle)).From(sql.Table(s.TableName()))
		page.First(n, of, order)(found)
		// OFFSET 0 keeps the planner from reversing the join.
		found.AppendFromExpr(sql.ExprFunc(func(b *sql.Builder) {
			b.WriteString("LATERAL (SELECT d.title @@ w.wanted AS " + inTitle + " FROM post_documents d, " + page.WantedSQL).
				Arg(page.Searched(q)).WriteString(page.WantedEndSQL + " WHERE d.post_id = posts.id AND " + conditions[TitleOrText] + " OFFSET 0) d")
		}))
		s.From(found.As(s.TableName()))
	}
}

// A document contains its board as a word. No text contains this word, because it has a space.
const postsHoldingSQL = `
WITH found AS MATERIALIZED (SELECT d.post_id FROM post_documents d, websearch_to_tsquery('english', searchable($2)) w(wanted)
WHERE numnode(w.wanted) > 0 AND %s AND d.%s @@ (w.wanted && ('''board ' || $3::uuid || '''')::tsquery)
  AND EXISTS (SELECT FROM boards WHERE organization_id = $1 AND id = $3)
)
SELECT post_id FROM found LIMIT $4`

// PostsHolding asks the index for the posts of a board that match, in no order.
func PostsHolding(ctx context.Context, s *postgres.DB, on publicid.Board, q string, in part, limit int) (postgres.UuidArray, error) {
	column := "words"
	if in == title {
		column = "title"
	}
	return page.Holding(ctx, s, fmt.Sprintf(postsHoldingSQL, conditions[in], column), page.Searched(q), on.UUID().String(), limit)
}
