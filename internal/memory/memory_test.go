package memory_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/memory"
)

func TestTheTableForOperatorsSaysTheBudget(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operating.md"))
	require.NoError(t, err)
	for kind, size := range map[string]int{
		"connections": memory.Connections, "bodies": memory.Bodies, "decoding": memory.Decoding, "answers": memory.Answers,
		"attempts": memory.Attempts, "starts": memory.Starts, "runs": memory.Runs, "program": memory.Program,
		"**a process**": memory.Process,
	} {
		require.Contains(t, string(text), fmt.Sprintf("| %s | %d MiB |", kind, size>>20))
	}
}

func TestTheChartGivesAContainerTheBudgetAndAFifthMore(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "helm", "earshot", "values.yaml"))
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(text), fmt.Sprintf("limits: {memory: %dMi}", memory.Process*6/5>>20)), "API and worker")
}
