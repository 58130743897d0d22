package feedback_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/ent/db/comment"
	"earshot/ent/db/vote"
	"earshot/internal/event"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
)

func TestMergesAtTheSameMoment(t *testing.T) {
	t.Parallel()
	togetherOn(t, roomy.Start(t), map[string]func(*testing.T, *tenant){
		"lose no vote and no comment":                            mergeAmid,
		"lose none that comes by way of a source":                mergeAgainAmid,
		"keep up with a post that moves on and on":               mergeOnAndOn,
		"count a retracted vote nowhere":                         mergeAmidRetractions,
		"don't go in a circle":                                   mergeBothWays,
		"share a source with one another":                        mergeOverlapping,
		"go on to the end of a chain":                            mergeInAChain,
		"are one, when they are the same":                        mergeTwice,
		"come to one end, with any posts merged into any others": mergeAtRandom,
		"count nothing twice when they are mixed":                mergeAtRandomAmid,
	})
}

// posts makes posts on one board and returns their ids.
func (n *tenant) posts(t *testing.T, count int) []string {
	t.Helper()
	board, made := n.Board(t), make([]string, count)
	for i := range made {
		made[i] = n.ID(t, board+"/posts", object{"title": fmt.Sprint("Post ", i)})
	}
	return made
}

func voting(by *tenant, on string) request {
	return request{by, http.MethodPost, "/v1/posts/" + on + "/votes", nil}
}

func commenting(by *tenant, on string, parent any) request {
	body := object{"body": object{"text": "x"}, "parentId": parent}
	return request{by, http.MethodPost, "/v1/posts/" + on + "/comments", body}
}

func merging(by *tenant, into string, sources ...string) request {
	return request{by, http.MethodPost, "/v1/posts/" + into + "/merge", object{"sourceIds": sources}}
}

// shuffled returns the requests in random order.
func shuffled(requests []request) []request {
	rand.Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
	return requests
}

// countersAreExact compares the counters of posts, including deleted posts, with the rows.
func (n *tenant) countersAreExact(t *testing.T, posts []string) {
	t.Helper()
	ctx, client := n.Context(t.Context()), n.App.Store.Client()
	for _, id := range posts {
		p := client.Post.GetX(ctx, parsed[publicid.Post](t, id))
		votes := client.Vote.Query().Where(vote.PostID(p.ID)).CountX(ctx)
		comments := client.Comment.Query().Where(comment.PostID(p.ID), comment.DeletedAtIsNil()).CountX(ctx)
		require.Equal(t, [2]int{votes, comments}, [2]int{p.VoteCount, p.CommentCount}, "votes and comments on %s", p.Title)
	}
}

// mergesAreSound checks that each merge leads to a live post in one step, and that merged posts
// have no votes or comments. It returns the target of each live post, or the post itself if it is
// not merged.
func (n *tenant) mergesAreSound(t *testing.T, posts []string) map[string]string {
	t.Helper()
	n.countersAreExact(t, posts)
	roots := map[string]string{}
	for _, id := range posts {
		a := n.Do(t, http.MethodGet, "/v1/posts/"+id, nil)
		if a.Status == http.StatusNotFound {
			continue
		}
		roots[id] = id
		into, merged := a.Data()["mergedIntoId"].(string)
		if !merged {
			continue
		}
		roots[id] = into
		require.Nil(t, n.Get(t, "/v1/posts/"+into)["mergedIntoId"], "merged into what is merged itself")
		holds(t, a.Data(), object{"status": "duplicate", "voteCount": 0, "commentCount": 0})
	}
	return roots
}

// votersOf returns the members who voted for a post.
func (n *tenant) votersOf(t *testing.T, on string) []string {
	t.Helper()
	voters := []string{}
	for _, row := range n.pages(t, "/v1/posts/"+on+"/votes", 100, nil) {
		voters = append(voters, row["userId"].(string))
	}
	slices.Sort(voters)
	return voters
}

// party returns concurrent requests of several members on some posts. Each member votes on two
// posts, comments on one and replies to a comment on another.
func party(members []*tenant, posts, first []string) []request {
	var all []request
	for i, m := range members {
		on := func(k int) int { return (i + k) % len(posts) }
		all = append(all, voting(m, posts[on(0)]), voting(m, posts[on(1)]),
			commenting(m, posts[on(2)], nil), commenting(m, posts[on(3)], first[on(3)]))
	}
	return all
}

// heard has requests and their answers.
type heard struct {
	requests []request
	answers  []apptest.Answer
}

func hear(t *testing.T, requests []request) heard { return heard{requests, race(t, requests)} }

// amid runs a party concurrently with other requests. It checks that every accepted vote and
// comment is on the target of its post's merge.
func amid(t *testing.T, n *tenant, members []*tenant, posts []string, others ...request) heard {
	t.Helper()
	var comments []request
	for _, p := range posts {
		comments = append(comments, commenting(n, p, nil))
	}
	before := hear(t, comments)
	first := make([]string, len(posts))
	for i, a := range before.answers {
		first[i] = a.Data()["id"].(string)
	}
	during := hear(t, shuffled(append(party(members, posts, first), others...)))
	only(t, during.answers, http.StatusOK, http.StatusCreated, http.StatusConflict)
	n.arrived(t, posts, before, during)
	return during
}

// arrived checks that each member has exactly one vote on the targets of the member's posts, and
// that each comment is there once.
func (n *tenant) arrived(t *testing.T, posts []string, all ...heard) {
	t.Helper()
	roots := n.mergesAreSound(t, posts)
	voters, comments := map[string][]string{}, map[string][]string{}
	for _, h := range all {
		for i, r := range h.requests {
			part := strings.Split(r.path, "/")
			on := roots[part[3]]
			switch part[4] {
			case "votes":
				voters[on] = append(voters[on], r.by.Owner.ID.String())
			case "comments":
				require.Equal(t, http.StatusCreated, h.answers[i].Status, "%s", h.answers[i].Raw)
				comments[on] = append(comments[on], h.answers[i].Data()["id"].(string))
			}
		}
	}
	for on, wanted := range voters {
		slices.Sort(wanted)
		require.Equal(t, slices.Compact(wanted), n.votersOf(t, on), "each voter once")
	}
	for on, wanted := range comments {
		require.ElementsMatch(t, wanted, ids(n.pages(t, "/v1/posts/"+on+"/comments", 100, nil)), "each comment once")
	}
}

// merges returns the statuses of the merges among the answers.
func (h heard) merges() map[int]int {
	var merges []apptest.Answer
	for i, r := range h.requests {
		if strings.HasSuffix(r.path, "/merge") {
			merges = append(merges, h.answers[i])
		}
	}
	return statuses(merges)
}

func mergeAmid(t *testing.T, n *tenant) {
	members := n.members(t, 8)
	for range 4 {
		posts := n.posts(t, 4)
		h := amid(t, n, members, posts, merging(n, posts[0], posts[1], posts[2]), merging(n, posts[0], posts[3]))
		require.Equal(t, map[int]int{http.StatusOK: 2}, h.merges())
		require.Len(t, n.votersOf(t, posts[0]), len(members))
	}
}

// Voters on a merged post hold its lock while they wait for its target, which is also being merged.
func mergeAgainAmid(t *testing.T, n *tenant) {
	members := n.members(t, 8)
	for range 4 {
		posts := n.posts(t, 4)
		n.Make(t, http.MethodPost, "/v1/posts/"+posts[1]+"/merge", object{"sourceIds": posts[:1]})
		amid(t, n, members, posts, merging(n, posts[3], posts[1]), merging(n, posts[1], posts[2]))
	}
}

// Members vote on the first post while it is merged from one post into the next.
func mergeOnAndOn(t *testing.T, n *tenant) {
	members, posts := n.members(t, many), n.posts(t, 10)
	all := make([]request, len(members))
	for i, m := range members {
		all[i] = voting(m, posts[0])
	}
	var votes heard
	atOnce(2, func(i int) (last apptest.Answer) {
		if i == 0 {
			votes = hear(t, slices.Concat(all, all, all))
			return last
		}
		for i := range posts[1:] {
			last = n.Do(t, http.MethodPost, "/v1/posts/"+posts[i+1]+"/merge", object{"sourceIds": posts[i : i+1]})
			assert.Equal(t, http.StatusOK, last.Status, "%s", last.Raw)
		}
		return last
	})
	only(t, votes.answers, http.StatusOK, http.StatusCreated)
	n.arrived(t, posts, votes)
	require.Len(t, n.votersOf(t, posts[len(posts)-1]), len(members))
}

// Each member has one vote. Members who retract it while it moves end with no vote.
func mergeAmidRetractions(t *testing.T, n *tenant) {
	members := n.members(t, 12)
	for range 4 {
		posts := n.posts(t, 3)
		var votes, retractions []request
		var stay []string
		for i, m := range members {
			votes = append(votes, voting(m, posts[i%3]))
			if i < len(members)/2 {
				retractions = append(retractions, request{m, http.MethodDelete, "/v1/posts/" + posts[i%3] + "/votes", nil})
				continue
			}
			stay = append(stay, m.Owner.ID.String())
		}
		only(t, race(t, votes), http.StatusCreated)
		only(t, race(t, shuffled(append(retractions, merging(n, posts[2], posts[:2]...)))), http.StatusOK)
		slices.Sort(stay)
		require.Equal(t, stay, n.votersOf(t, posts[2]))
		n.mergesAreSound(t, posts)
	}
}

func mergeBothWays(t *testing.T, n *tenant) {
	for range tier.Repeats() {
		p := n.posts(t, 2)
		answers := race(t, []request{merging(n, p[0], p[1]), merging(n, p[1], p[0])})
		require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusConflict: 1}, statuses(answers))
		n.mergesAreSound(t, p)
	}
}

// merged returns the posts that are merged into another post.
func merged(roots map[string]string) []string {
	var all []string
	for id, root := range roots {
		if id != root {
			all = append(all, id)
		}
	}
	return all
}

func mergeOverlapping(t *testing.T, n *tenant) {
	for range tier.Repeats() / 2 {
		p := n.posts(t, 5)
		answers := race(t, []request{merging(n, p[0], p[2], p[3]), merging(n, p[1], p[3], p[4])})
		require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusConflict: 1}, statuses(answers))
		require.Len(t, merged(n.mergesAreSound(t, p)), 2, "all sources of the one, and none of the other")
	}
}

func mergeInAChain(t *testing.T, n *tenant) {
	members := n.members(t, 4)
	for range tier.Repeats() / 4 {
		p := n.posts(t, 4)
		amid(t, n, members, p, merging(n, p[1], p[0]), merging(n, p[2], p[1]), merging(n, p[3], p[2]))
	}
}

func mergeTwice(t *testing.T, n *tenant) {
	n.Listen(t, event.PostStatusChanged)
	for round := range tier.Repeats() / 2 {
		p := n.posts(t, 3)
		answers := race(t, slices.Repeat([]request{merging(n, p[0], p[1], p[2]), merging(n, p[0], p[2], p[1])}, 2))
		require.Equal(t, map[int]int{http.StatusOK: 4}, statuses(answers))
		require.Len(t, n.Payloads(t, event.PostStatusChanged), 2*(round+1), "each source tells it once")
		n.mergesAreSound(t, p)
	}
}

// anyMerges returns merges between random posts.
func anyMerges(n *tenant, posts []string, count int) []request {
	var all []request
	for range count {
		order := slices.Clone(posts)
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		all = append(all, merging(n, order[0], order[1:2+rand.IntN(2)]...))
	}
	return all
}

func mergeAtRandom(t *testing.T, n *tenant) {
	n.Listen(t, event.PostStatusChanged)
	var want, told []string
	for range tier.Repeats() / 2 {
		posts := n.posts(t, 6)
		only(t, race(t, anyMerges(n, posts, 8)), http.StatusOK, http.StatusConflict)
		want = append(want, merged(n.mergesAreSound(t, posts))...)
	}
	for _, p := range n.Payloads(t, event.PostStatusChanged) {
		told = append(told, p["post"].(object)["id"].(string))
	}
	require.ElementsMatch(t, want, told)
}

func mergeAtRandomAmid(t *testing.T, n *tenant) {
	members := n.members(t, 6)
	for range tier.Repeats() / 4 {
		posts := n.posts(t, 5)
		amid(t, n, members, posts, anyMerges(n, posts, 5)...)
	}
}
