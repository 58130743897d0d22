package apptest

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/access"
	"earshot/internal/event"
)

// NewKey is the input for one more API key.
var NewKey = access.NewAPIKey{Name: "another", Scope: "read:write"}

// ByContract checks the payloads of events against the contract.
func ByContract(t *testing.T, events []*db.Event) {
	t.Helper()
	c, err := loadContract()
	require.NoError(t, err)
	require.Len(t, c.events, len(event.Delivered))
	for _, e := range events {
		payload, err := jsonschema.UnmarshalJSON(bytes.NewReader(e.Payload))
		require.NoError(t, err)
		require.Contains(t, c.events, e.Type)
		schema, err := c.schema(c.events[e.Type])
		require.NoError(t, err)
		require.NoError(t, schema.Validate(payload), "%s", e.Payload)
		require.Equal(t, e.Type, payload.(Object)["event"])
	}
}
