package apptest

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/submission"
	"earshot/internal/change"
	"earshot/internal/publicactions"
	"earshot/internal/publicid"
)

// Submission sends a comment of an end-user on a post and returns the id of the pending submission.
// The end-user's e-mail address is already confirmed. The board becomes public and moderated.
func (n *Tenant) Submission(t testing.TB, board, post string) string {
	t.Helper()
	n.Make(t, http.MethodPatch, "/v1/boards/"+board, map[string]any{"public": true, "moderated": true})
	ctx := change.WithCaller(t.Context(), &change.Caller{Organization: n.Organization})
	done, err := n.App.PublicActions.Act(ctx,
		publicactions.Sender{Email: n.Organization.ID.String() + "@example.com", Name: "Vera"},
		publicactions.Wanted{Kind: publicactions.Comment, Post: publicid.Read[publicid.Post](post), Text: "Me too, please."}, "")
	require.NoError(t, err)
	require.True(t, done.Waits)
	newest, err := n.App.Store.Client().Submission.Query().Order(db.Desc(submission.FieldID)).First(n.Context(t.Context()))
	require.NoError(t, err)
	return newest.ID.String()
}
