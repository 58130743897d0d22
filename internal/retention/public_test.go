package retention_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
	"earshot/internal/ratelimit"
	"earshot/internal/retention"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

func TestNetworkHashesAndFirstMailSlotsAreRemovedAfterTheirRetention(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s := fixture.Open(t, url)
	o := fixture.Seed(t, s)
	conn := fixture.Connect(t, url)
	submitted := func(age time.Duration) publicid.Submission {
		return s.Client().Submission.Create().SetID(fixture.IDAt(publicid.SubmissionAt, fixture.Ago(age))).SetKind("post").SetReason("moderated").
			SetBoardID(o.Board).SetEmailHash([]byte("hash")).SetNetworkHash([]byte("network")).SaveX(o.Ctx).ID
	}
	old, young := submitted(retention.NetworkRetention+time.Hour), submitted(retention.NetworkRetention-time.Hour)
	removed, whole, err := retention.ForgetNetworks(t.Context(), s)
	require.NoError(t, err)
	require.False(t, whole)
	require.Equal(t, 1, removed)
	require.Empty(t, *s.Client().Submission.GetX(o.Ctx, old).NetworkHash, "the submission itself goes on waiting")
	require.NotEmpty(t, *s.Client().Submission.GetX(o.Ctx, young).NetworkHash)

	// The slot that the seed has made.
	_, err = conn.Exec(t.Context(), "UPDATE first_mails SET slot_at = $1", fixture.Ago(retention.FirstMailRetention+time.Hour))
	require.NoError(t, err)
	_, err = ratelimit.TakeFirstMailSlot(o.Ctx, s, []byte("young"), 100)
	require.NoError(t, err)
	removed, _, err = retention.RemoveFirstMails(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	at, err := ratelimit.FirstMailSlot(o.Ctx, s, []byte("young"))
	require.NoError(t, err)
	require.False(t, at.IsZero())
}
