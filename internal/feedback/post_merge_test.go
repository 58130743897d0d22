package feedback_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
)

func TestAMergeOfPosts(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"moves the votes, one a voter":                           mergedVotes,
		"keeps the vote of each member who shares an address":    mergedTwinMembers,
		"moves the comments, with replies and tombstones":        mergedComments,
		"leaves readable duplicates that name the target":        mergedSources,
		"changes only the counts and times of the target":        mergedTarget,
		"tells each source's change of status once":              mergedEvents,
		"tells nothing of a source that was a duplicate already": mergedDuplicate,
		"can be repeated": mergedAgain,
		"takes sources that are new beside those merged before": mergedMore,
		"counts a source that is named several times once":      mergedTwins,
		"takes 20 sources":                                      mergedTwenty,
		"points earlier sources to the new target":              mergedChain,
		"is refused for posts that it can't merge, all or none": badMerges,
		"is refused for lists of sources that can't be right":   badSources,
		"of missing posts is refused":                           mergeOfNothing,
	})
}

func (n *tenant) merge(t *testing.T, target string, sources ...string) object {
	t.Helper()
	return n.Make(t, http.MethodPost, target+"/merge", object{"sourceIds": idsOf(sources...)})
}

// idsOf returns the ids in paths of posts.
func idsOf(paths ...string) []string {
	ids := make([]string, len(paths))
	for i, path := range paths {
		ids[i] = strings.TrimPrefix(path, "/v1/posts/")
	}
	return ids
}

// counts returns a post's numbers of votes and comments, by its counters and by its lists.
func (n *tenant) counts(t *testing.T, post string) string {
	t.Helper()
	p := n.Get(t, post)
	votes, comments := n.Walk(t, post+"/votes", "100", func() {}), n.Walk(t, post+"/comments", "100", func() {})
	return fmt.Sprintf("%s votes, %d listed; %s comments, %d listed", p["voteCount"], len(votes), p["commentCount"], len(comments))
}

func mergedVotes(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 3)
	target, a, b := posts[1], posts[0], posts[2]
	second, third := n.member(t, "b"), n.member(t, "c")
	n.ID(t, a+"/votes", nil) // older than the vote on the target, which is kept
	onTarget := n.ID(t, target+"/votes", nil)
	n.ID(t, b+"/votes", nil)
	secondOnB := second.ID(t, b+"/votes", nil)
	second.ID(t, a+"/votes", nil)
	thirdOnA := third.ID(t, a+"/votes", nil)
	ada := n.anonymousVote(t, target, "ada")
	n.anonymousVote(t, a, "ada")
	bob := n.anonymousVote(t, b, "bob")
	n.anonymousVote(t, a, "bob")
	cleo := n.anonymousVote(t, a, "cleo")

	merged := n.merge(t, target, a, b)
	require.Equal(t, json.Number("6"), merged["voteCount"])
	require.Equal(t, []string{cleo, bob, ada, thirdOnA, secondOnB, onTarget}, n.shown(t, target+"/votes", "id"))
	for _, post := range []string{a, b} {
		require.Equal(t, "0 votes, 0 listed; 0 comments, 0 listed", n.counts(t, post))
	}
	for _, voter := range []*tenant{n, second, third} {
		require.Equal(t, http.StatusOK, voter.Do(t, http.MethodPost, target+"/votes", nil).Status, "the vote is there already")
	}
	for range 3 {
		third.Make(t, http.MethodDelete, target+"/votes", nil)
	}
	require.Equal(t, "5 votes, 5 listed; 0 comments, 0 listed", n.counts(t, target))
}

// A visitor's vote can match either member, but not both.
func mergedTwinMembers(t *testing.T, n *tenant) {
	voters := []func(t *testing.T, post string){
		func(t *testing.T, post string) { n.anonymousVote(t, post, n.hashOf("twin@example.com")) },
	}
	for _, name := range []string{"twin", "TWIN"} {
		member := n.member(t, name)
		voters = append(voters, func(t *testing.T, post string) { member.ID(t, post+"/votes", nil) })
	}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		_, posts := n.numbered(t, 3)
		for i, post := range posts {
			voters[order[i]](t, post)
		}
		require.Equal(t, json.Number("2"), n.merge(t, posts[0], posts[1:]...)["voteCount"], order)
		require.Equal(t, "2 votes, 2 listed; 0 comments, 0 listed", n.counts(t, posts[0]), order)
	}
	_, posts := n.numbered(t, 3)
	voters[1](t, posts[1])
	voters[2](t, posts[1])
	voters[1](t, posts[2])
	voters[2](t, posts[2])
	voters[0](t, posts[0])
	require.Equal(t, json.Number("2"), n.merge(t, posts[0], posts[1:]...)["voteCount"], "each member twice")
}

func mergedComments(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 3)
	first, target, last := posts[0], posts[1], posts[2]
	top := n.Comment(t, first, "")
	onTarget := n.Comment(t, target, "")
	reply := n.Comment(t, first, top)
	onLast := n.Comment(t, last, "")
	replyOnTarget := n.Comment(t, target, onTarget)
	n.Make(t, http.MethodDelete, "/v1/comments/"+top, nil)
	n.Make(t, http.MethodDelete, "/v1/comments/"+replyOnTarget, nil)
	before := n.Do(t, http.MethodGet, first+"/comments", nil).Body["data"].([]any)

	merged := n.merge(t, target, first, last)
	require.Equal(t, json.Number("3"), merged["commentCount"])
	want := []string{top, reply, onTarget, replyOnTarget, onLast}
	require.Equal(t, want, n.shown(t, target+"/comments", "id"), "the threads go by their age, whatever post they began on")
	require.Equal(t, want, n.paged(t, target+"/comments?", 1, "id"))
	for i, moved := range n.Do(t, http.MethodGet, target+"/comments", nil).Body["data"].([]any)[:2] {
		before[i].(object)["postId"], before[i].(object)["updatedAt"] = idsOf(target)[0], moved.(object)["updatedAt"]
		require.Equal(t, before[i], moved, "nothing else of them changes")
	}
	for _, post := range []string{first, last} {
		require.Equal(t, "0 votes, 0 listed; 0 comments, 0 listed", n.counts(t, post))
	}
	n.Make(t, http.MethodDelete, "/v1/comments/"+onLast, nil)
	n.Comment(t, target, onTarget)
	n.Comment(t, target, top)
	require.Equal(t, "0 votes, 0 listed; 4 comments, 7 listed", n.counts(t, target))
}

func mergedSources(t *testing.T, n *tenant) {
	board := n.Board(t)
	tag := n.ID(t, board+"/tags", object{"name": "a"})
	contact := n.Identify(t, object{"externalUserId": "ada"})["id"]
	target := n.say(t, board, "Dark mode", "")
	source := "/v1/posts/" + n.ID(t, board+"/posts", object{
		"title": "Darkness", "body": object{"json": object{"a": true}, "text": "x"}, "tagIds": []string{tag}, "contactId": contact,
	})
	n.Patch(t, source, object{"hideFromRoadmap": true, "status": "planned"})
	n.ID(t, source+"/votes", nil)
	want := n.Get(t, source)
	n.merge(t, target, source)
	got := n.Get(t, source)
	require.Greater(t, got["updatedAt"], want["updatedAt"])
	want["status"], want["mergedIntoId"], want["voteCount"] = "duplicate", idsOf(target)[0], json.Number("0")
	require.Equal(t, apptest.Without(want, "updatedAt", "lastActivityAt"), apptest.Without(got, "updatedAt", "lastActivityAt"))
	require.Equal(t, []any{got}, n.Do(t, http.MethodGet, board+"/posts?status=duplicate", nil).Body["data"])
	require.Equal(t, []string{"Darkness"}, n.shown(t, "/v1/contacts/"+contact.(string)+"/posts", "title"))
}

func mergedTarget(t *testing.T, n *tenant) {
	board := n.Board(t)
	tag := n.ID(t, board+"/tags", object{"name": "a"})
	target := "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "Dark mode", "tagIds": []string{tag}})
	source := n.say(t, board, "Darkness", "Black on black")
	n.Patch(t, target, object{"status": "shipped"})
	n.ID(t, source+"/votes", nil)
	n.Comment(t, source, "")
	want := n.Get(t, target)
	got := n.merge(t, target, source)
	require.Equal(t, n.Get(t, target), got)
	require.Greater(t, got["lastActivityAt"], want["lastActivityAt"])
	want["voteCount"], want["commentCount"] = json.Number("1"), json.Number("1")
	require.Equal(t, apptest.Without(want, "updatedAt", "lastActivityAt"), apptest.Without(got, "updatedAt", "lastActivityAt"))
	require.Equal(t, []string{"Dark mode", "Darkness"}, n.shown(t, board+"/posts?sort=votes", "title"))
}

func mergedEvents(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 3)
	n.Patch(t, posts[1], object{"status": "in_progress"})
	n.ID(t, posts[1]+"/votes", nil)
	n.Comment(t, posts[1], "")
	n.Listen(t)
	n.merge(t, posts[0], posts[2], posts[1])
	require.Len(t, n.Recorded(t), 2, "votes and comments that move are no news")
	previous := map[any]any{}
	for _, told := range n.Payloads(t, event.PostStatusChanged) {
		source := told["post"].(object)
		read := n.Get(t, "/v1/posts/"+source["id"].(string))
		require.Equal(t, object{
			"event": "post.status_changed", "organizationId": n.Organization.ID.String(), "boardId": read["boardId"],
			"previousStatus": told["previousStatus"],
			"post": object{
				"id": read["id"], "title": read["title"], "slug": read["slug"], "status": "duplicate", "createdAt": read["createdAt"],
			},
		}, told)
		previous[source["title"]] = told["previousStatus"]
	}
	require.Equal(t, map[any]any{"1": "in_progress", "2": "open"}, previous)
}

func mergedDuplicate(t *testing.T, n *tenant) {
	board, posts := n.numbered(t, 2)
	duplicate := n.orphanOn(t, board)
	n.Listen(t)
	n.merge(t, posts[0], duplicate)
	require.Empty(t, n.Recorded(t))
	require.Equal(t, idsOf(posts[0])[0], n.Get(t, duplicate)["mergedIntoId"])
	n.merge(t, posts[0], duplicate, posts[1])
	require.Len(t, n.Recorded(t), 1)
}

func mergedAgain(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 3)
	n.ID(t, posts[1]+"/votes", nil)
	n.Comment(t, posts[2], "")
	n.Listen(t)
	merged := n.merge(t, posts[0], posts[1], posts[2])
	unchanged := n.Watch(t)
	require.Equal(t, merged, n.merge(t, posts[0], posts[1], posts[2]))
	require.Equal(t, merged, n.merge(t, posts[0], posts[2]))
	unchanged(t)
}

func mergedMore(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 3)
	n.ID(t, posts[1]+"/votes", nil)
	n.merge(t, posts[0], posts[1])
	n.Listen(t)
	n.Comment(t, posts[2], "")
	n.merge(t, posts[0], posts[1], posts[2])
	told := n.Payloads(t, event.PostStatusChanged)
	require.Len(t, told, 1)
	require.Equal(t, "2", told[0]["post"].(object)["title"])
	require.Equal(t, "1 votes, 1 listed; 1 comments, 1 listed", n.counts(t, posts[0]))
}

func mergedTwins(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 2)
	n.ID(t, posts[1]+"/votes", nil)
	n.Comment(t, posts[1], "")
	n.Listen(t)
	n.merge(t, posts[0], posts[1], posts[1], posts[1])
	require.Len(t, n.Recorded(t), 1)
	require.Equal(t, "1 votes, 1 listed; 1 comments, 1 listed", n.counts(t, posts[0]))
}

func mergedTwenty(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 22)
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, posts[10]+"/merge", object{"sourceIds": idsOf(append(posts[:10:10], posts[11:]...)...)})
	require.Equal(t, []string{"sourceIds maxItems"}, apptest.FieldRules(a))
	for _, post := range posts {
		n.anonymousVote(t, post, "ada")
		n.anonymousVote(t, post, post)
		n.Comment(t, post, "")
	}
	n.merge(t, posts[10], append(posts[:10:10], posts[11:21]...)...)
	require.Equal(t, "22 votes, 22 listed; 21 comments, 21 listed", n.counts(t, posts[10]))
	require.Equal(t, "2 votes, 2 listed; 1 comments, 1 listed", n.counts(t, posts[21]))
}

func mergedChain(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 4)
	a, b, c, d := posts[0], posts[1], posts[2], posts[3]
	n.ID(t, a+"/votes", nil)
	n.Comment(t, a, "")
	n.merge(t, b, a)
	n.Listen(t)
	n.merge(t, c, b)
	n.merge(t, d, c)
	for _, post := range []string{a, b, c} {
		read := n.Get(t, post)
		require.Equal(t, "duplicate", read["status"])
		require.Equal(t, idsOf(d)[0], read["mergedIntoId"])
	}
	require.Equal(t, "1 votes, 1 listed; 1 comments, 1 listed", n.counts(t, d))
	require.Len(t, n.Recorded(t), 2, "nothing of the one that was merged before")
	unchanged := n.Watch(t)
	n.merge(t, d, a, b, c)
	unchanged(t)
}

func badMerges(t *testing.T, n *tenant) {
	board, posts := n.numbered(t, 5)
	elsewhere, stranger := n.Post(t), n.on(t, "business")
	foreign := stranger.Post(t)
	merged, into := posts[3], posts[4]
	n.merge(t, into, merged)
	gone := n.say(t, board, "gone", "")
	n.Make(t, http.MethodDelete, gone, nil)
	n.ID(t, posts[1]+"/votes", nil)
	n.Listen(t)
	for why, test := range map[string]struct {
		target  string
		sources []string
		code    string
		details object
	}{
		"target merged": {merged, posts[1:2], "ERR_CONFLICT", object{"reason": "target_merged", "mergedIntoId": idsOf(into)[0]}},
		"back again":    {merged, []string{into}, "ERR_CONFLICT", object{"reason": "target_merged", "mergedIntoId": idsOf(into)[0]}},
		"elsewhere":     {posts[0], []string{posts[1], merged}, "ERR_CONFLICT", object{"reason": "already_merged", "sourceIds": []any{idsOf(merged)[0]}}},
		"gone source":   {posts[0], []string{posts[1], gone}, "ERR_NOT_FOUND", object{"field": "sourceIds"}},
		"foreign":       {posts[0], []string{posts[1], foreign}, "ERR_NOT_FOUND", object{"field": "sourceIds"}},
		"gone target":   {gone, posts[1:2], "ERR_NOT_FOUND", nil},
		"foreign one":   {foreign, posts[1:2], "ERR_NOT_FOUND", nil},
	} {
		a := n.Refused(t, test.code, http.MethodPost, test.target+"/merge", object{"sourceIds": idsOf(test.sources...)})
		require.Equal(t, test.details, a.Details(), why)
	}
	for want, sources := range map[string][]string{
		"sourceIds[1] sameBoard": {posts[1], elsewhere},
		"sourceIds[1] notTarget": {posts[1], posts[0]},
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, posts[0]+"/merge", object{"sourceIds": idsOf(sources...)})
		require.Equal(t, []string{want}, apptest.FieldRules(a))
	}
}

func badSources(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 2)
	source := idsOf(posts[1])[0]
	twenty := make([]string, 20)
	for i := range twenty {
		twenty[i] = source
	}
	for _, test := range []struct {
		sources any
		want    []string
	}{
		{[]string{}, []string{"sourceIds minItems"}},
		{append(twenty, source), []string{"sourceIds maxItems"}},
		{nil, []string{"sourceIds type"}},
		{source, []string{"sourceIds type"}},
		{[]any{source, 1}, []string{"sourceIds[1] type"}},
		{[]string{source, ""}, []string{"sourceIds[1] minLength"}},
		{[]string{"x", idsOf(posts[0])[0]}, []string{"sourceIds[1] notTarget"}},
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, posts[0]+"/merge", object{"sourceIds": test.sources})
		require.Equal(t, test.want, apptest.FieldRules(a))
	}
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, posts[0]+"/merge", object{})
	require.Equal(t, []string{"sourceIds"}, a.Fields())
	n.Make(t, http.MethodPost, posts[0]+"/merge", object{"sourceIds": twenty})
}

func mergeOfNothing(t *testing.T, n *tenant) {
	a := n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, "/v1/posts/x/merge", object{"sourceIds": []string{"x"}})
	require.NotContains(t, a.Details(), "field")
	a = n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, n.Post(t)+"/merge", object{"sourceIds": []string{"x"}})
	require.Equal(t, "sourceIds", a.Details()["field"])
}

func TestAPostThatWasMerged(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"passes votes on, put and taken":                                 votesPassedOn,
		"passes comments and replies on":                                 commentsPassedOn,
		"can be changed, but for its status":                             mergedChanged,
		"changes nothing when it is sent back as it was read":            mergedSentBack,
		"leaves its votes and comments to the target when it is deleted": mergedThenDeleted,
		"keeps votes and comments again once its target is deleted":      standsAlone,
		"can be merged again once its target is deleted":                 mergedElsewhere,
		"can be merged into again once its target is deleted":            mergedIntoAgain,
		"doesn't name its target any more once that is deleted":          targetForgotten,
		"gets any status again once its target is deleted":               orphanMoved,
		"stays in the changelog entries that link it":                    mergedLinked,
	})
}

func votesPassedOn(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 2)
	target, source, id := posts[0], posts[1], idsOf(posts[0])[0]
	n.merge(t, target, source)
	n.Listen(t, event.VoteCreated)
	first := n.Do(t, http.MethodPost, source+"/votes", nil)
	require.Equal(t, http.StatusCreated, first.Status)
	require.Equal(t, id, first.Data()["postId"])
	told := n.Payloads(t, event.VoteCreated)
	require.Len(t, told, 1)
	require.Equal(t, apptest.Without(first.Data(), "contactId"), told[0]["vote"])
	for _, post := range []string{source, target} {
		again := n.Do(t, http.MethodPost, post+"/votes", nil)
		require.Equal(t, http.StatusOK, again.Status)
		require.Equal(t, first.Data(), again.Data())
	}
	require.Equal(t, "1 votes, 1 listed; 0 comments, 0 listed", n.counts(t, target))
	require.Equal(t, "0 votes, 0 listed; 0 comments, 0 listed", n.counts(t, source))
	for _, want := range []any{first.Data()["id"], nil} {
		require.Equal(t, object{"id": want, "postId": id}, n.Make(t, http.MethodDelete, source+"/votes", nil))
	}
	require.Equal(t, "0 votes, 0 listed; 0 comments, 0 listed", n.counts(t, target))
}

func commentsPassedOn(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 2)
	target, source := posts[0], posts[1]
	moved := n.Comment(t, source, "")
	n.merge(t, target, source)
	own := n.Comment(t, target, "")
	n.Listen(t, event.CommentCreated)
	for _, parent := range []any{nil, moved, own} {
		made := n.Make(t, http.MethodPost, source+"/comments", object{"body": object{"text": "x"}, "parentId": parent})
		require.Equal(t, idsOf(target)[0], made["postId"])
		require.Equal(t, parent, made["parentId"])
	}
	for _, told := range n.Payloads(t, event.CommentCreated) {
		require.Equal(t, idsOf(target)[0], told["comment"].(object)["postId"])
	}
	require.Len(t, n.Recorded(t), 3)
	require.Equal(t, "0 votes, 0 listed; 5 comments, 5 listed", n.counts(t, target))
	require.Equal(t, "0 votes, 0 listed; 0 comments, 0 listed", n.counts(t, source))
}

func mergedChanged(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 2)
	n.merge(t, posts[0], posts[1])
	n.Listen(t)
	got := n.Patch(t, posts[1], object{"title": "New", "status": "duplicate"})
	require.Equal(t, "New", got["title"])
	for _, status := range []string{"open", "under_review", "planned", "in_progress", "shipped", "declined"} {
		a := n.Refused(t, "ERR_CONFLICT", http.MethodPatch, posts[1], object{"title": "Newer", "status": status})
		require.Equal(t, object{"reason": "already_merged", "mergedIntoId": idsOf(posts[0])[0]}, a.Details(), status)
	}
	require.Empty(t, n.Recorded(t))
	require.Equal(t, idsOf(posts[0])[0], n.Make(t, http.MethodPost, posts[1]+"/votes", nil)["postId"])
}

func mergedSentBack(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 2)
	n.merge(t, posts[0], posts[1])
	read := n.Get(t, posts[1])
	unchanged := n.Watch(t)
	require.Equal(t, read, n.Patch(t, posts[1], read))
	unchanged(t)
}

func mergedThenDeleted(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 2)
	n.ID(t, posts[1]+"/votes", nil)
	n.Comment(t, posts[1], "")
	n.merge(t, posts[0], posts[1])
	n.Make(t, http.MethodDelete, posts[1], nil)
	require.Equal(t, "1 votes, 1 listed; 1 comments, 1 listed", n.counts(t, posts[0]))
	n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, posts[1]+"/votes", nil)
}

// orphanOn makes a post on the board whose target was deleted.
func (n *tenant) orphanOn(t *testing.T, board string) string {
	t.Helper()
	orphan, target := n.say(t, board, "Orphan", ""), n.say(t, board, "Gone", "")
	n.merge(t, target, orphan)
	n.Make(t, http.MethodDelete, target, nil)
	return orphan
}

// orphan is orphanOn for a post with a vote, on a board with others.
func (n *tenant) orphan(t *testing.T) (orphan string, others []string) {
	t.Helper()
	_, posts := n.numbered(t, 3)
	n.ID(t, posts[0]+"/votes", nil)
	n.merge(t, posts[1], posts[0])
	n.Make(t, http.MethodDelete, posts[1], nil)
	return posts[0], posts[2:]
}

func standsAlone(t *testing.T, n *tenant) {
	post, _ := n.orphan(t)
	n.Listen(t)
	id := idsOf(post)[0]
	require.Equal(t, id, n.Make(t, http.MethodPost, post+"/votes", nil)["postId"])
	top := n.Make(t, http.MethodPost, post+"/comments", object{"body": object{"text": "x"}})
	require.Equal(t, id, top["postId"])
	n.Comment(t, post, top["id"].(string))
	require.Equal(t, id, n.Payloads(t, event.VoteCreated)[0]["vote"].(object)["postId"])
	require.Equal(t, "1 votes, 1 listed; 2 comments, 2 listed", n.counts(t, post))
	require.Equal(t, id, n.Make(t, http.MethodDelete, post+"/votes", nil)["postId"])
	require.Equal(t, "0 votes, 0 listed; 2 comments, 2 listed", n.counts(t, post))
}

func mergedElsewhere(t *testing.T, n *tenant) {
	post, others := n.orphan(t)
	n.ID(t, post+"/votes", nil)
	n.merge(t, others[0], post)
	require.Equal(t, idsOf(others[0])[0], n.Get(t, post)["mergedIntoId"])
	require.Equal(t, "1 votes, 1 listed; 0 comments, 0 listed", n.counts(t, others[0]))
}

func mergedIntoAgain(t *testing.T, n *tenant) {
	post, others := n.orphan(t)
	n.ID(t, others[0]+"/votes", nil)
	n.merge(t, post, others[0])
	require.Equal(t, "1 votes, 1 listed; 0 comments, 0 listed", n.counts(t, post))
}

func targetForgotten(t *testing.T, n *tenant) {
	post, _ := n.orphan(t)
	read := n.Get(t, post)
	require.Nil(t, read["mergedIntoId"], "a deleted post is gone for everybody")
	require.Equal(t, "duplicate", read["status"], "what it becomes is for people to say")
}

func orphanMoved(t *testing.T, n *tenant) {
	post := n.orphanOn(t, n.Board(t))
	n.Listen(t)
	require.Equal(t, "planned", n.Patch(t, post, object{"status": "planned"})["status"])
	require.Equal(t, "duplicate", n.Payloads(t, event.PostStatusChanged)[0]["previousStatus"])
	n.Refused(t, "ERR_VALIDATION", http.MethodPatch, post, object{"status": "duplicate"})
}

func mergedLinked(t *testing.T, n *tenant) {
	board, posts := n.numbered(t, 2)
	entry := "/v1/changelog/" + n.ID(t, board+"/changelog", object{"title": "x"})
	n.Make(t, http.MethodPut, entry+"/linked-posts", object{"postIds": idsOf(posts...)})
	n.merge(t, posts[0], posts[1])
	require.Equal(t, []any{idsOf(posts[0])[0], idsOf(posts[1])[0]}, n.Get(t, entry)["postIds"])
}
