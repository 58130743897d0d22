package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTestsThatWereNotRunAreCountedForEachToolWithItsCommand(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "test.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"Action":"output","Package":"earshot/e2e","Test":"TestA","Output":"    a_test.go:7: NOT RUN: needs chromium\n"}
{"Action":"output","Package":"earshot/e2e","Test":"TestB","Output":"    b_test.go:7: NOT RUN: needs chromium\n"}
{"Action":"skip","Package":"earshot/e2e","Test":"TestB"}
{"Action":"output","Package":"earshot/e2e","Test":"TestC","Output":"    b_test.go:9: NOT RUN: needs python:httpx\n"}
{"Action":"output","Package":"earshot/api","Output":"NOT RUN: needs postgres\n"}
{"Action":"output","Package":"earshot/api","Test":"TestD","Output":"=== RUN   TestD\n"}
`), 0o600))
	var said strings.Builder
	require.NoError(t, list(file, &said))
	require.Equal(t, `NOT RUN: 1 package needs postgres: sudo apt-get install postgresql, or make test INSTALL=1
NOT RUN: 2 tests need chromium: sudo apt-get install chromium, or make test INSTALL=1
NOT RUN: 1 test needs python:httpx: sudo apt-get install python3-httpx, or make test INSTALL=1
`, said.String())
}
