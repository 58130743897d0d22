package feedback_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
)

func TestAChangeThatIsMadeTogetherWithOthers(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"writes the same posts as alone":                                      postsAsAlone,
		"writes the same votes and comments as alone":                         votesAndCommentsAsAlone,
		"costs its neighbours nothing when it is refused":                     refusedNeighbours,
		"costs its neighbours nothing when it fails":                          failedNeighbours,
		"doesn't wait for a post that a neighbour waits for":                  heldPost,
		"doesn't wait for a contact, tag or board that a neighbour waits for": heldPlaces,
	})
}

// postsAsAlone creates posts in shared transactions, and one after the other.
func postsAsAlone(t *testing.T, n *tenant) {
	other := n.on(t, "business")
	for _, in := range []*tenant{n, other} {
		in.Listen(t, event.PostCreated)
		in.Listen(t, event.PostCreated, event.PostStatusChanged)
		contact := strings.TrimPrefix(in.Person(t, "u-1"), "/v1/contacts/")
		boards := []string{in.Board(t), in.Board(t)}
		tags := make([][]string, len(boards))
		for i, board := range boards {
			tags[i] = []string{in.ID(t, board+"/tags", object{"name": "a"}), in.ID(t, board+"/tags", object{"name": "b"})}
		}
		kinds := []func(on int) object{
			func(int) object {
				return object{"title": "Dark mode", "body": object{"json": object{"b": 1.0, "a": "<"}, "text": "text"}}
			},
			func(int) object { return object{"title": "Dark mode"} },
			func(int) object { return object{"title": "Dark mode 2"} }, // The second "Dark mode" has its slug.
			func(int) object { return object{"title": "A contact's", "contactId": contact} },
			func(int) object { return object{"title": "A contact's", "externalUserId": "u-1"} },
			func(on int) object { return object{"title": "Tagged", "tagIds": tags[on]} },
		}
		const rounds = 4
		create := func(i int) apptest.Answer {
			on := i % len(boards)
			return in.Do(t, http.MethodPost, boards[on]+"/posts", kinds[i/len(boards)%len(kinds)](on))
		}
		count := len(boards) * len(kinds) * rounds
		if in == n {
			require.Equal(t, map[int]int{http.StatusCreated: count}, statuses(atOnce(count, create)))
		} else {
			for i := range count {
				require.Equal(t, http.StatusCreated, create(i).Status)
			}
		}
	}
	slugs := regexp.MustCompile(`"slug": "[^"]*"`) // The order decides on the numbers.
	rows := func(of *tenant, table string) []string {
		all := of.Contents(t, table)
		for i := range all {
			all[i] = slugs.ReplaceAllString(all[i], "")
		}
		slices.Sort(all)
		return all
	}
	for _, table := range []string{"posts", "post_documents", "post_tags", "deliveries"} {
		require.NotEmpty(t, rows(n, table))
		require.Equal(t, rows(other, table), rows(n, table), table)
	}
	require.Len(t, n.Payloads(t, event.PostCreated), len(other.Payloads(t, event.PostCreated)))
}

// votesAndCommentsAsAlone has members vote and comment in shared transactions, and one after the
// other. A contact's vote or comment comes alone in both cases.
func votesAndCommentsAsAlone(t *testing.T, n *tenant) {
	other := n.on(t, "business")
	for _, in := range []*tenant{n, other} {
		in.Listen(t, event.VoteCreated)
		in.Listen(t, event.VoteCreated, event.CommentCreated)
		posts, members := []string{in.Post(t), in.Post(t)}, make([]*tenant, 16)
		parents := []string{in.Comment(t, posts[0], ""), in.Comment(t, posts[1], "")}
		for i := range members {
			members[i] = in.member(t, fmt.Sprintf("member-%d", i))
		}
		const each = 3 // requests of a member on each post
		write := func(i int) apptest.Answer {
			member, post := members[i/each/2], posts[i/each%2]
			body := object{"body": object{"text": fmt.Sprint("comment ", i), "json": object{"b": 1.5, "a": "<"}}}
			switch i % each {
			case 0:
				return member.Do(t, http.MethodPost, post+"/votes", nil)
			case 1:
				body["parentId"] = parents[i/each%2]
			}
			return member.Do(t, http.MethodPost, post+"/comments", body)
		}
		count := len(members) * len(posts) * each
		if in == n {
			require.Equal(t, map[int]int{http.StatusCreated: count}, statuses(atOnce(count, write)))
		} else {
			for i := range count {
				require.Equal(t, http.StatusCreated, write(i).Status)
			}
		}
		in.Identify(t, object{"externalUserId": "u-1", "email": "u-1@example.com"})
		for _, status := range []int{http.StatusCreated, http.StatusOK} {
			in.voteOf(t, posts[0], object{"externalUserId": "u-1"}, status)
		}
		in.ID(t, posts[0]+"/comments", object{"body": object{"text": "a contact's"}, "externalUserId": "u-1"})
		require.Equal(t, "17 votes, 17 listed; 34 comments, 34 listed", in.counts(t, posts[0]))
	}
	for _, table := range []string{"posts", "votes", "comments", "deliveries"} {
		require.NotEmpty(t, n.Contents(t, table))
		require.Equal(t, other.Contents(t, table), n.Contents(t, table), table)
	}
	// The events have another order.
	for _, of := range []event.Type{event.VoteCreated, event.CommentCreated} {
		require.Len(t, n.Payloads(t, of), len(other.Payloads(t, of)))
	}
}

func (n *tenant) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), n.App.Config.DatabaseURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// refusedNeighbours mixes requests that are refused or run alone with requests that share a
// transaction.
func refusedNeighbours(t *testing.T, n *tenant) {
	n.Listen(t)
	posts := n.Board(t) + "/posts"
	target, source, gone := n.ID(t, posts, object{"title": "target"}), n.ID(t, posts, object{"title": "source"}), n.ID(t, posts, object{"title": "gone"})
	n.Make(t, http.MethodPost, "/v1/posts/"+target+"/merge", object{"sourceIds": []string{source}})
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodDelete, "/v1/posts/"+gone, nil).Status)
	n.ID(t, "/v1/posts/"+target+"/votes", nil)
	deep := n.ID(t, "/v1/posts/"+target+"/comments", object{"body": object{"text": "x"}})
	reply := n.ID(t, "/v1/posts/"+target+"/comments", object{"body": object{"text": "x"}, "parentId": deep})
	comment := func(on, parent string) request {
		body := object{"body": object{"text": "x"}}
		if parent != "" {
			body["parentId"] = parent
		}
		return request{n, http.MethodPost, "/v1/posts/" + on + "/comments", body}
	}
	kinds := []struct {
		request
		status int
	}{
		{request{n, http.MethodPost, posts, object{"title": "one of many"}}, http.StatusCreated},
		{request{n, http.MethodPost, posts, object{"title": "x", "contactId": "ctc_none"}}, http.StatusNotFound},
		{request{n, http.MethodPost, "/v1/boards/brd_none/posts", object{"title": "x"}}, http.StatusNotFound},
		{comment(target, ""), http.StatusCreated},
		{comment(source, ""), http.StatusCreated},
		{comment(gone, ""), http.StatusNotFound},
		{comment(target, deep), http.StatusCreated},
		{comment(target, reply), http.StatusUnprocessableEntity},
		{comment(target, "cmt_none"), http.StatusNotFound},
		{request{n, http.MethodPost, "/v1/posts/" + target + "/votes", nil}, http.StatusOK},
		{request{n, http.MethodPost, "/v1/posts/" + source + "/votes", nil}, http.StatusOK},
		{request{n, http.MethodPost, "/v1/posts/" + gone + "/votes", nil}, http.StatusNotFound},
		{request{n, http.MethodPost, "/v1/posts/" + target + "/votes", object{"contactId": "ctc_none"}}, http.StatusNotFound},
	}
	const rounds = 6
	answers := atOnce(rounds*len(kinds), func(i int) apptest.Answer { return kinds[i%len(kinds)].do(t) })
	for i, a := range answers {
		assert.Equal(t, kinds[i%len(kinds)].status, a.Status, "%s %s", kinds[i%len(kinds)].path, a.Raw)
	}
	require.EqualValues(t, json.Number(fmt.Sprint(2+3*rounds)), n.Get(t, "/v1/posts/"+target)["commentCount"])
	slugs := map[any]bool{}
	for _, a := range answers {
		if a.Data()["slug"] != nil {
			slugs[a.Data()["slug"]] = true
		}
	}
	require.Len(t, slugs, rounds, "each has a slug of its own")
	require.Len(t, n.Payloads(t, event.PostCreated), 3+rounds)
	require.Len(t, n.Payloads(t, event.CommentCreated), 2+3*rounds)
}

// failedNeighbours makes the database abort the transaction of some requests.
func failedNeighbours(t *testing.T, n *tenant) {
	posts := n.Board(t) + "/posts"
	_, err := n.App.Pool.Exec(t.Context(), `
CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
CREATE OR REPLACE TRIGGER refuse BEFORE INSERT ON posts FOR EACH ROW WHEN (NEW.title = 'refused by the database') EXECUTE FUNCTION refuse()`)
	require.NoError(t, err)
	answers := n.atOnce(t, many, http.MethodPost, posts, func(i int) any {
		if i%5 == 0 {
			return object{"title": "refused by the database"}
		}
		return object{"title": fmt.Sprintf("number %d", i)}
	})
	for i, a := range answers {
		want := http.StatusCreated
		if i%5 == 0 {
			want = http.StatusInternalServerError
		}
		assert.Equal(t, want, a.Status, "%s", a.Raw)
	}
	require.Len(t, n.Walk(t, posts, "100", func() {}), many-many/5)
}

// heldPost votes and comments on a post that another transaction locks, and on other posts.
func heldPost(t *testing.T, n *tenant) {
	held, free := n.Post(t), n.Post(t)
	members := n.members(t, 3)
	tx, err := n.connect(t).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM posts WHERE id = $1 FOR UPDATE",
		publicid.Read[publicid.Post](n.Get(t, held)["id"].(string)).UUID())
	require.NoError(t, err)
	waiting := make(chan apptest.Answer, 2)
	comment := object{"body": object{"text": "x"}}
	go func() { waiting <- n.Do(t, http.MethodPost, held+"/comments", comment) }()
	go func() { waiting <- n.Do(t, http.MethodPost, held+"/votes", nil) }()
	for _, member := range members {
		member.ID(t, free+"/comments", comment)
		member.ID(t, free+"/votes", nil)
	}
	require.Empty(t, waiting)
	require.NoError(t, tx.Rollback(t.Context()))
	for range cap(waiting) {
		require.Equal(t, http.StatusCreated, (<-waiting).Status)
	}
}

// heldPlaces creates posts that need rows which another transaction is about to delete, and others.
func heldPlaces(t *testing.T, n *tenant) {
	free, board := n.Board(t), n.Board(t)
	tag, contact := n.ID(t, free+"/tags", object{"name": "held"}), strings.TrimPrefix(n.Person(t, "u-1"), "/v1/contacts/")
	tx, err := n.connect(t).Begin(t.Context())
	require.NoError(t, err)
	for statement, id := range map[string]uuid.UUID{
		"SELECT FROM boards WHERE id = $1 FOR UPDATE":   publicid.Read[publicid.Board](strings.TrimPrefix(board, "/v1/boards/")).UUID(),
		"SELECT FROM tags WHERE id = $1 FOR UPDATE":     publicid.Read[publicid.Tag](tag).UUID(),
		"SELECT FROM contacts WHERE id = $1 FOR UPDATE": publicid.Read[publicid.Contact](contact).UUID(),
	} {
		_, err = tx.Exec(t.Context(), statement, id)
		require.NoError(t, err)
	}
	waiting := make(chan apptest.Answer, 3)
	for _, held := range []request{
		{n, http.MethodPost, board + "/posts", object{"title": "x"}},
		{n, http.MethodPost, free + "/posts", object{"title": "x", "tagIds": []string{tag}}},
		{n, http.MethodPost, free + "/posts", object{"title": "x", "contactId": contact}},
	} {
		go func() { waiting <- held.do(t) }()
	}
	for range 3 {
		n.ID(t, free+"/posts", object{"title": "x"})
	}
	require.Empty(t, waiting)
	require.NoError(t, tx.Rollback(t.Context()))
	for range cap(waiting) {
		require.Equal(t, http.StatusCreated, (<-waiting).Status)
	}
}
