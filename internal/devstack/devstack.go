// Package devstack starts and stops the two servers that Earshot needs on a developer's machine and
// in tests: a private Postgres cluster and a Temporal dev server. It needs no preparation on
// Debian, Ubuntu or macOS.
//
// It manages the processes, their directories, their ports and the search for their binaries. A
// server belongs to the program that started it. A Ctrl-C in the terminal doesn't reach the server,
// so that the program can stop everything in order. If the program is killed, its servers end:
// immediately on Linux, elsewhere at the next start in the same directory.
//
// The package touches no cluster or server that it didn't start. It is independent of Earshot's
// schema, namespaces and search attributes. It is not for production.
package devstack

import (
	"os"
	"path/filepath"

	"github.com/go-faster/errors"

	"earshot/internal/devstack/process"
)

// Report receives one line of progress per call, without a newline. Several goroutines may call it.
// A nil Report is always allowed.
type Report = process.Report

// RepositoryRoot returns the directory that contains tools/go.mod, at or above the current one.
// TemporalBinary needs it.
func RepositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", errors.Wrap(err, "find the repository")
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "tools", "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no tools/go.mod in this directory or above it: run this inside the Earshot repository")
		}
		dir = parent
	}
}
