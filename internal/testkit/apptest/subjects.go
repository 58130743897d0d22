package apptest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
)

// Finished completes an export or an erasure, as the worker does, and returns its id. The worker
// pauses an erasure while contact.deleted is pending. Finished continues immediately, because the
// tests deliver no events.
func (n *Tenant) Finished(t testing.TB, request string) string {
	t.Helper()
	id, err := publicid.Parse[publicid.SubjectRequest](request)
	require.NoError(t, err)
	for waits := 0; ; {
		p, err := n.App.Privacy.Continue(t.Context(), id)
		require.NoError(t, err)
		if p.Wait {
			waits++
		}
		require.Less(t, waits, 2, "a delivery is on its way")
		if p.Status != "running" {
			return request
		}
	}
}
