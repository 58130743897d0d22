package devstack

import (
	"os"
	"path/filepath"

	"github.com/go-faster/errors"
)

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
