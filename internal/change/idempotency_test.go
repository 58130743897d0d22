package change_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/seal"
	"earshot/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestAPanickingChangeReleasesItsIdempotencyKeyAndItsTransactionSlot(t *testing.T) {
	t.Parallel()
	s, box := testkit.Store(t), seal.New()
	require.NoError(t, box.Add("test", make([]byte, 32)))
	runner := change.NewRunner(s, nil, box, change.Settings{})
	org, owner, err := access.New(s, runner, slog.New(slog.DiscardHandler)).CreateOrganization(t.Context(),
		access.NewOrganization{Name: "Acme", Plan: "business", OwnerEmail: "owner@example.com", OwnerName: "Olive Owner"})
	require.NoError(t, err)
	caller := change.WithCaller(t.Context(), &change.Caller{Organization: org, User: owner})
	withKey := func(i int) (context.Context, *change.Idempotent) {
		return change.WithIdempotencyKey(caller, sha256.Sum256([]byte(fmt.Sprint(i))), [32]byte{})
	}
	for i := range 100 { // more than an organization's transaction slots
		ctx, once := withKey(i)
		require.Panics(t, func() { _ = runner.Run(ctx, func(*change.Change) error { panic("a bug") }) })
		require.NoError(t, once.Commit(ctx, change.Answer{}), "there is nothing to commit")
		once.Abandon()
	}
	ctx, once := withKey(1)
	require.NoError(t, runner.Run(ctx, func(*change.Change) error { return nil }), "its key is free again, and there is a transaction")
	require.NoError(t, once.Commit(ctx, change.Answer{Status: 200}))
}
