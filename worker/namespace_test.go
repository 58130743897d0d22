package worker_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"earshot/internal/searchattributes"
	"earshot/workflows"
)

// `make up`, the tests and a deployment register the list in temporal-dev.yaml. If an attribute is
// missing, no delivery can start.
func TestTheListedSearchAttributesAreThoseOfTheWorkflows(t *testing.T) {
	t.Parallel()
	listed, err := searchattributes.Read(filepath.Join("..", "temporal-dev.yaml"))
	require.NoError(t, err)
	require.Equal(t, searchattributes.Attributes(workflows.SearchAttributes()), listed)
}

// SQL visibility, which the development server uses, has a limited number of columns for each type.
func TestSearchAttributesFitIntoSQLVisibility(t *testing.T) {
	t.Parallel()
	used := map[enumspb.IndexedValueType]int{}
	for _, kind := range workflows.SearchAttributes() {
		used[kind]++
	}
	require.LessOrEqual(t, used[enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST], 3)
	require.LessOrEqual(t, used[enumspb.INDEXED_VALUE_TYPE_KEYWORD], 10)
	require.Len(t, used, 2, "say here how many of the new type there may be")
}

func TestAnUnknownTypeOfSearchAttributeIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "temporal.yaml")
	require.NoError(t, os.WriteFile(file, []byte("searchAttributes: {each-namespace: {DeliveryID: Keywords}}"), 0o600))
	_, err := searchattributes.Read(file)
	require.ErrorContains(t, err, `search attribute DeliveryID has the unknown type "Keywords"`)
}

func TestAListOfSearchAttributesThatCanNotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	_, err := searchattributes.Read(filepath.Join(t.TempDir(), "missing.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)

	for _, text := range []string{"searchAttributes: [DeliveryID", "env: {dev: {port: 7233}}"} {
		file := filepath.Join(t.TempDir(), "temporal.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err = searchattributes.Read(file)
		require.ErrorContains(t, err, "temporal.yaml")
	}
}
