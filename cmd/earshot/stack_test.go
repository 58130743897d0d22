package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/devstack/statedir"
)

func TestResetAsksOnATerminalOnly(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := confirm(strings.NewReader("yes\n"), &out, statedir.Dir(t.TempDir()))
	require.ErrorContains(t, err, "use --yes")
	require.Empty(t, out.String())
}
