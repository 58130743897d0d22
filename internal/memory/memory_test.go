package memory_test

import (
	"fmt"
	"os"
	"path/filepath"
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
