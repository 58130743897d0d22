package worker_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

// The events are sent with the commit, so nobody knows the deliveries of a commit without an answer.
func TestTheSweepSendsADeliveryWhoseCommitGotNoAnswer(t *testing.T) {
	t.Parallel()
	l, database := testkit.NewLink(t, testkit.Database(t))
	r := testkit.NewReceiver(t)
	app := apptest.Start(t, apptest.Options{DatabaseURL: database, Worker: true})
	n := app.Tenant(t)
	board := n.ID(t, "/v1/boards", map[string]any{"name": "Ideas"})
	n.Register(t, r, "post.created")
	l.LoseCommit()
	answer := n.Do(t, http.MethodPost, "/v1/boards/"+board+"/posts", map[string]any{"title": "Dark mode"})
	require.Equal(t, http.StatusInternalServerError, answer.Status, "nobody knows whether it is there: %s", answer.Raw)
	// The schedule's own sweep may come first.
	sweep(t, app)
	require.Contains(t, string(r.Await(t, 1)[0].Body), "Dark mode")
}
