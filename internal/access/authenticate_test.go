package access_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/testkit"
)

func TestKeysThatComeAtOnceAreLookedUpTogetherAndAsEntReadsThem(t *testing.T) {
	t.Parallel()
	counted := &testkit.Statements{}
	s, err := postgres.Open(postgres.Options{URL: testkit.Database(t), MaxConns: 4, Tracer: counted})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	service := access.New(s, change.NewRunner(s, nil, nil, change.Settings{}), slog.New(slog.DiscardHandler))
	org, owner, err := service.CreateOrganization(t.Context(), access.NewOrganization{
		Name: "Acme", Plan: "business", OwnerEmail: "owner@example.com", OwnerName: "Olive Owner",
	})
	require.NoError(t, err)
	ctx := postgres.WithOrganization(t.Context(), org.ID)
	valid, made, err := service.CreateAPIKey(ctx, access.NewAPIKey{User: owner.ID, Name: "CI", Scope: "read"})
	require.NoError(t, err)
	_, err = service.Authenticate(t.Context(), valid)
	require.NoError(t, err)
	counted.Reset()

	const guesses = 1000
	var all sync.WaitGroup
	for i := range guesses {
		all.Go(func() {
			_, err := service.Authenticate(t.Context(), fmt.Sprint("esk_guess", i))
			assert.Equal(t, access.BadKey(), err)
		})
	}
	caller, err := service.Authenticate(t.Context(), valid)
	require.NoError(t, err)
	all.Wait()
	_, trips, _ := counted.Counted()
	require.Less(t, trips, guesses/10, "whoever makes keys up doesn't keep the database busy")

	require.Equal(t, text(t, s.Client().Organization.GetX(ctx, org.ID)), text(t, caller.Organization))
	member := s.Client().User.GetX(ctx, owner.ID)
	require.Nil(t, *member.EmailHash)
	member.EmailHash = nil // Ent reads null as a pointer to nil
	require.Equal(t, text(t, member), text(t, caller.User))
	key := *caller.Key
	key.Edges = db.APIKeyEdges{}
	require.Equal(t, text(t, s.Client().APIKey.GetX(ctx, made.ID)), text(t, &key))
}

// text formats an entity without Ent's fields that are no columns.
func text(t *testing.T, entity any) string {
	t.Helper()
	raw, err := json.Marshal(entity)
	require.NoError(t, err)
	return string(raw)
}
