package change_test

import (
	"context"
	"testing"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"

	"earshot/internal/change"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
)

// run makes a board by a change of its own.
func (b *batches) run(ctx context.Context, name string, q change.Request[publicid.Board]) (publicid.Board, error) {
	return change.Run(ctx, b.runner, q, func(c *change.Change) (publicid.Board, error) {
		id := publicid.NewBoard()
		if err := c.Board.Create().SetID(id).SetName(name).SetSlug(name).Exec(ctx); err != nil {
			return id, err
		}
		return id, q.CheckIfMatch(c, id)
	})
}

func TestARequestWithAKeyTakesEffectOnce(t *testing.T) {
	t.Parallel()
	b, ctx := newBatches(t, testkit.SharedStore(t))
	first, err := b.run(ctx, "a", b.keyed(1))
	require.NoError(t, err)
	_, err = b.run(ctx, "b", b.keyed(1))
	var before *change.ReplayedError
	require.ErrorAs(t, err, &before)
	require.Equal(t, change.Answer{Status: 201, Body: []byte(first.String())}, before.Answer)
	other := b.keyed(1)
	other.Key.Fingerprint[0] = 1
	_, err = b.run(ctx, "c", other)
	require.True(t, problem.Is(err, problem.IdempotencyMismatch), "%v", err)
	_, err = change.Run(ctx, b.runner, b.keyed(2), func(*change.Change) (publicid.Board, error) {
		_, err := b.run(ctx, "d", b.keyed(2))
		require.True(t, problem.Is(err, problem.IdempotencyInProgress), "%v", err)
		_, err = b.Do(ctx, "d", b.keyed(2))
		require.True(t, problem.Is(err, problem.IdempotencyInProgress), "%v", err)
		return publicid.Board{}, errors.New("no")
	})
	require.EqualError(t, err, "no")
	_, err = b.Do(ctx, "e", b.keyed(2))
	require.NoError(t, err, "a request that failed has no answer to keep")
	require.Equal(t, []string{"a", "e"}, b.names(ctx, t))
}

func TestARequestWhosePreconditionIsNotMetOrNotJudgedChangesNothing(t *testing.T) {
	t.Parallel()
	b, ctx := newBatches(t, testkit.SharedStore(t))
	q := change.Request[publicid.Board]{Match: func(publicid.Board) error { return problem.New(problem.PreconditionFailed, "no") }}
	_, err := b.run(ctx, "a", q)
	require.True(t, problem.Is(err, problem.PreconditionFailed), "%v", err)
	q.Match = func(publicid.Board) error { return nil }
	_, err = change.Run(ctx, b.runner, q, func(c *change.Change) (publicid.Board, error) {
		return publicid.Board{}, c.Board.Create().SetName("b").SetSlug("b").Exec(ctx)
	})
	require.ErrorContains(t, err, "without a look at the precondition")
	_, err = b.run(ctx, "c", q)
	require.NoError(t, err)
	require.Equal(t, []string{"c"}, b.names(ctx, t))
}

func TestAPanicReleasesTheKeyAndTheTransactionSlot(t *testing.T) {
	t.Parallel()
	b, ctx := newBatches(t, testkit.SharedStore(t))
	for range 30 { // more than an organization's transaction slots
		require.PanicsWithValue(t, "a bug", func() {
			_, _ = change.Run(ctx, b.runner, b.keyed(1), func(*change.Change) (publicid.Board, error) { panic("a bug") })
		})
		broken := b.keyed(1)
		broken.Answer = func(publicid.Board) (change.Answer, error) { panic("no JSON") }
		require.PanicsWithValue(t, "no JSON", func() { _, _ = b.run(ctx, "a", broken) })
	}
	_, err := b.run(ctx, "b", b.keyed(1))
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, b.names(ctx, t))
}
