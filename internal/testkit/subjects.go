package testkit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
)

// Finished goes on with an export or an erasure to its end, as a worker does, and returns its id.
func (n *Tenant) Finished(t testing.TB, request string) string {
	t.Helper()
	id, err := publicid.Parse[publicid.SubjectRequest](request)
	require.NoError(t, err)
	for {
		p, err := n.App.Subjects.Continue(t.Context(), id)
		require.NoError(t, err)
		require.False(t, p.Wait, "a delivery is on its way")
		if p.Status != "running" {
			return request
		}
	}
}
