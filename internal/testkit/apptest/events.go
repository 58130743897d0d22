package apptest

import (
	"bytes"
	"path/filepath"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/access"
	"earshot/internal/event"
	"earshot/internal/testkit"
)

// NewKey is the input for one more API key.
var NewKey = access.NewAPIKey{Name: "another", Scope: "read:write"}

// contractOfEvents has the schema of each event from the webhooks section of the contract. They are
// compiled like the schemas of answers.
var contractOfEvents = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	doc, err := openapi3.NewLoader().LoadFromFile(filepath.Join(testkit.Root(), "api", "openapi.yaml"))
	if err != nil {
		return nil, err
	}
	text, err := doc.MarshalJSON()
	if err != nil {
		return nil, err
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", tree); err != nil {
		return nil, err
	}
	schemas := map[string]*jsonschema.Schema{}
	for name, item := range doc.Webhooks {
		ref := item.Post.RequestBody.Value.Content.Get("application/json").Schema.Ref
		if schemas[name], err = compiler.Compile("openapi.json" + ref); err != nil {
			return nil, err
		}
	}
	return schemas, nil
})

// ByContract checks the payloads of events against the contract.
func ByContract(t *testing.T, events []*db.Event) {
	t.Helper()
	schemas, err := contractOfEvents()
	require.NoError(t, err)
	require.Len(t, schemas, len(event.Delivered))
	for _, e := range events {
		payload, err := jsonschema.UnmarshalJSON(bytes.NewReader(e.Payload))
		require.NoError(t, err)
		require.Contains(t, schemas, e.Type)
		require.NoError(t, schemas[e.Type].Validate(payload), "%s", e.Payload)
		require.Equal(t, e.Type, payload.(Object)["event"])
	}
}
