package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePagesHaveTheirGeneratedParts(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	pages, err := written(root)
	require.NoError(t, err)
	for page, want := range pages {
		got, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		require.Equal(t, want, string(got), "%s: make generate", page)
	}
}
