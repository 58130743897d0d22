package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
	"earshot/internal/store"
	"earshot/internal/testkit"
)

func TestNetworkHashesAndFirstMailSlotsAreRemovedAfterTheirRetention(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s := open(t, url)
	o := seed(t, s)
	conn := connect(t, url)
	submitted := func(age time.Duration) publicid.Submission {
		return s.Client().Submission.Create().SetID(publicid.SubmissionAt(ago(age))).SetKind("post").SetReason("moderated").
			SetBoardID(o.board).SetEmailHash([]byte("hash")).SetNetworkHash([]byte("network")).SaveX(o.ctx).ID
	}
	old, young := submitted(store.NetworkRetention+time.Hour), submitted(store.NetworkRetention-time.Hour)
	removed, whole, err := s.ForgetNetworks(t.Context())
	require.NoError(t, err)
	require.False(t, whole)
	require.Equal(t, 1, removed)
	require.Empty(t, *s.Client().Submission.GetX(o.ctx, old).NetworkHash, "the submission itself goes on waiting")
	require.NotEmpty(t, *s.Client().Submission.GetX(o.ctx, young).NetworkHash)

	// The slot that the seed has made.
	_, err = conn.Exec(t.Context(), "UPDATE first_mails SET slot_at = $1", ago(store.FirstMailRetention+time.Hour))
	require.NoError(t, err)
	_, err = s.TakeFirstMailSlot(o.ctx, []byte("young"), 100)
	require.NoError(t, err)
	removed, _, err = s.RemoveFirstMails(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	at, err := s.FirstMailSlot(o.ctx, []byte("young"))
	require.NoError(t, err)
	require.False(t, at.IsZero())
}
