package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTypeScriptSDKMatchesTheContract(t *testing.T) {
	t.Parallel()
	doc, err := read(filepath.Join("..", "..", "api", "openapi.yaml"))
	require.NoError(t, err)
	api, err := build(doc)
	require.NoError(t, err)
	files, err := typescript(api)
	require.NoError(t, err)
	for path, want := range files {
		got, err := os.ReadFile(filepath.Join("..", path))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s: go run ./sdk/generate", path)
	}
}

func TestATextOfTheContractCantEndItsComment(t *testing.T) {
	t.Parallel()
	require.Equal(t, "  /** Send `*\\/*`. */\n", jsdoc(2, " Send `*/*`.\n", ""))
	require.Equal(t, "/**\n * One.\n *\n * Two.\n */\n", jsdoc(0, "One.", "Two."))
	require.Empty(t, jsdoc(2, "", " "))
}

func TestARequestThatHasNoSignatureInTypeScriptFailsTheGenerator(t *testing.T) {
	t.Parallel()
	query := []Field{{Name: "q"}}
	for _, op := range []*Operation{
		{ID: "op", Body: &Object{Name: "Body"}, Query: query},
		{ID: "op", Query: []Field{{Name: "q", Required: true}}},
		{ID: "op", Conditional: true},
	} {
		_, err := tsParameters(op)
		require.Error(t, err)
	}
	signature, err := tsParameters(&Operation{ID: "op", PathParams: []Field{{Name: "boardId"}}, Query: query, Keyed: true})
	require.NoError(t, err)
	require.Equal(t, "boardId: string, query?: OpQuery, options?: WriteOptions", signature)
}

func TestErrorsAreNamedByTheirCodes(t *testing.T) {
	t.Parallel()
	require.Equal(t, "NotFoundError", tsError("ERR_NOT_FOUND"))
	require.Equal(t, "InternalError", tsError("ERR_INTERNAL"))
}
