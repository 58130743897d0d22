package publicactions_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicactions"
	"earshot/internal/publicid"
)

// own makes an address of this stage alone. The limit of a mailbox spans all organizations, and so all runs of a test.
func (s *stage) own(email string) string { return s.board.String() + "." + email }

// votes casts a vote with an address of its own, from a remembered browser.
func (s *stage) votes(t *testing.T, email string, on publicid.Post) {
	t.Helper()
	_, err := s.Act(s.ctx, publicactions.Sender{Email: s.own(email), Name: "Quentin"}, publicactions.Wanted{Kind: publicactions.Vote, Post: on}, "")
	require.NoError(t, err)
}

// count is the number of votes on a post, by its counter and by its rows.
func (s *stage) count(t *testing.T, on publicid.Post) int {
	t.Helper()
	var counted, rows int
	s.query(t, `SELECT vote_count, (SELECT count(*) FROM votes v WHERE v.post_id = p.id) FROM posts p
		WHERE organization_id = $1 AND id = '`+on.UUID().String()+`'`,
		&counted, &rows)
	require.Equal(t, rows, counted)
	return rows
}

func TestAMailboxHasOneVoteOnAPostHoweverItsAddressIsSpelled(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var all sync.WaitGroup
	for _, email := range []string{"ab@gmail.com", "a.b@gmail.com", "A.B+news@googlemail.com", "ab@googlemail.com"} {
		all.Go(func() { s.votes(t, email, s.post) })
	}
	all.Wait()
	require.Equal(t, 1, s.count(t, s.post))
	s.votes(t, "abc@gmail.com", s.post)
	require.Equal(t, 2, s.count(t, s.post), "another mailbox")

	// Both the spelling that voted and one that never voted see the vote and take it back.
	post := s.App.Store.Client().Post.GetX(s.Context(t.Context()), s.post)
	for _, email := range []string{"ab@gmail.com", "a.b@gmail.com", "a.b.+x@gmail.com"} {
		voted, err := s.HasVoted(s.ctx, publicactions.Sender{Email: s.own(email)}, post)
		require.NoError(t, err)
		require.True(t, voted, email)
	}
	require.NoError(t, s.Retract(s.ctx, publicactions.Sender{Email: s.own("a.b.+x@gmail.com")}, s.post))
	require.Equal(t, 1, s.count(t, s.post))
}

// A vote from an earlier release has the hash of its own spelling and no link to a mailbox.
func TestAVoteThatWasCastBeforeMailboxesWereKnownStaysAndCounts(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.votes(t, "a.b@gmail.com", s.post)
	s.query(t, "WITH gone AS (DELETE FROM address_spellings WHERE organization_id = $1 RETURNING 1) SELECT count(*) FROM gone", new(int))
	post := s.App.Store.Client().Post.GetX(s.Context(t.Context()), s.post)
	voted, err := s.HasVoted(s.ctx, publicactions.Sender{Email: s.own("a.b@gmail.com")}, post)
	require.NoError(t, err)
	require.True(t, voted)
	s.votes(t, "a.b@gmail.com", s.post)
	require.Equal(t, 1, s.count(t, s.post), "the same spelling")
	s.votes(t, "ab@gmail.com", s.post)
	require.Equal(t, 1, s.count(t, s.post), "and now the others are known, too")
}

func TestAMergeCountsAMailboxOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	other := publicid.Read[publicid.Post](s.ID(t, "/v1/boards/"+s.board.String()+"/posts", object{"title": "Night mode"}))
	s.votes(t, "a.b@gmail.com", s.post)
	s.votes(t, "ab+x@gmail.com", other)
	s.votes(t, "abc@gmail.com", other)
	s.Make(t, http.MethodPost, "/v1/posts/"+other.String()+"/merge", object{"sourceIds": []string{s.post.String()}})
	require.Equal(t, 2, s.count(t, other))
	s.votes(t, "ab@gmail.com", other)
	require.Equal(t, 2, s.count(t, other))
}
