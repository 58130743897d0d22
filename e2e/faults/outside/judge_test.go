package outside_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/e2e/faults/outside"
)

// town has four visitors' interactions, the letters and the board.
type town struct {
	interactions []outside.Interaction
	first, now   map[string]outside.Letter
	seen         outside.Seen
}

// well is a town without violations. One post, vote and comment each were confirmed, and one post
// wasn't. One form was sent twice and never accepted.
func well() *town {
	interaction := func(kind outside.Kind, words, email string, sent int, accepted, confirmed bool) outside.Interaction {
		return outside.Interaction{Kind: kind, Words: words, Email: email, Sent: sent, Accepted: accepted, Confirmed: confirmed}
	}
	letters := map[string]outside.Letter{}
	for name, to := range map[string]string{"1": "ada@", "2": "bo@", "3": "cy@", "4": "di@", "5": "ed@", "6": "ed@"} {
		letters[name] = outside.Letter{ID: name, To: to, Link: "/-/confirm?token=" + name}
	}
	letters["7"] = outside.Letter{ID: "7", To: "admin@"} // about a webhook
	return &town{
		interactions: []outside.Interaction{
			interaction(outside.Post, "Interaction 0", "ada@", 1, true, true), interaction(outside.Vote, "", "bo@", 1, true, true),
			interaction(outside.Comment, "Interaction 2", "cy@", 1, true, true), interaction(outside.Post, "Interaction 3", "di@", 1, true, false),
			interaction(outside.Post, "Interaction 4", "ed@", 2, false, false),
		},
		first: maps.Clone(letters), now: letters,
		seen: outside.Seen{
			Posts: map[string][]string{"Dark mode": {"pst_0"}, "Interaction 0": {"pst_1"}}, Comments: map[string][]string{"Interaction 2": {"cmt_1"}},
			Votes: []string{"vot_1"}, VoteCount: 1, CommentCount: 1,
		},
	}
}

func TestTheJudgeReportsEachBrokenPromiseToAVisitor(t *testing.T) {
	t.Parallel()
	w := well()
	made, violations := outside.Judge(w.interactions, w.first, w.now, w.seen)
	require.Empty(t, violations)
	require.Equal(t, outside.Made{outside.Post: {"pst_1"}, outside.Vote: {"vot_1"}, outside.Comment: {"cmt_1"}}, made)
	for says, change := range map[string]func(w *town){
		"link lost: the form of di@ was accepted, and no link was mailed":     func(w *town) { delete(w.now, "4"); delete(w.first, "4") },
		"links made up: ed@ sent the form 1 times and got 2 links":            func(w *town) { w.interactions[4].Sent = 1 },
		"link changed: the e-mail 1 to ada@ was sent again with another link": func(w *town) { w.now["1"] = outside.Letter{ID: "1", To: "ada@", Link: "x"} },
		"e-mail gone: 5 to ed@": func(w *town) { delete(w.now, "5") },
		"interaction lost: the post of ada@ was confirmed and is there 0 times":  func(w *town) { delete(w.seen.Posts, "Interaction 0") },
		"interaction lost: the post of ada@ was confirmed and is there 2 times":  func(w *town) { w.seen.Posts["Interaction 0"] = []string{"a", "b"} },
		"interaction made up: the post of di@ was not confirmed and is there 1 ": func(w *town) { w.seen.Posts["Interaction 3"] = []string{"a"} },
		"interaction made up: the post of ed@ was not confirmed and is there 1 ": func(w *town) { w.seen.Posts["Interaction 4"] = []string{"a"} },
		"votes: 1 were confirmed and 2 are there":                                func(w *town) { w.seen.Votes = []string{"a", "b"} },
		"votes: 1 were confirmed and 0 are there":                                func(w *town) { w.seen.Votes = nil },
		"counts: the post says 2 votes and 1 comments, and has 1 and 1":          func(w *town) { w.seen.VoteCount = 2 },
		"counts: the post says 1 votes and 0 comments, and has 1 and 1":          func(w *town) { w.seen.CommentCount = 0 },
	} {
		w := well()
		change(w)
		_, violations := outside.Judge(w.interactions, w.first, w.now, w.seen)
		require.Len(t, violations, 1, says)
		require.Contains(t, violations[0], says)
	}
	w = well()
	w.now["2"] = outside.Letter{ID: "2", To: "bo@", Link: w.now["1"].Link}
	_, violations = outside.Judge(w.interactions, w.first, w.now, w.seen)
	require.True(t, slices.ContainsFunc(violations, func(line string) bool { return line[:10] == "link twice" }), violations)
}

func TestACopyIsHeldAgainstTheListRowByRow(t *testing.T) {
	t.Parallel()
	list := map[string]string{"a": "1", "b": "2"}
	require.Empty(t, outside.Differing(maps.Clone(list), list))
	require.Equal(t, []string{"copy: a is missing", "copy: b is 3 and not 2", "copy: c isn't in the list"},
		outside.Differing(map[string]string{"b": "3", "c": "4"}, list))
}
