// Package statedir finds the directory of a development stack, and reads the settings in it.
package statedir

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/go-faster/errors"

	"earshot/internal/config"
	"earshot/internal/devstack"
)

// Variable selects the state directory, like --dir.
const Variable = "EARSHOT_DIR"

// The settings of dev.env that clients of the stack need.
const (
	BaseURLVariable = "EARSHOT_BASE_URL"
	KeyVariable     = "EARSHOT_API_KEY"
)

// Dir is the directory of one development stack. It contains the data of both servers, the
// settings that `earshot up` made, and the logs. Its bin directory contains built programs and
// belongs to the build.
type Dir string

// File returns the path of a file in the directory.
func (d Dir) File(name string) string { return filepath.Join(string(d), name) }

// DevEnv is the file with the addresses and API keys of the stack.
func (d Dir) DevEnv() string { return d.File("dev.env") }

// ListenID is the file with the id of the directory for `earshot listen`.
func (d Dir) ListenID() string { return d.File("listen-id") }

// Make creates the directory. Other users may pass through it but not list it, because Postgres may
// run as another user.
func (d Dir) Make() error {
	if err := os.MkdirAll(string(d), 0o711); err != nil {
		return errors.Wrap(err, "make the state directory")
	}
	return nil
}

// Find returns the absolute path of the state directory. It uses the flag, then the
// environment, then the repository.
func Find(flag string, environ config.Environ) (Dir, error) {
	dir := flag
	if dir == "" {
		dir, _ = environ.LookupEnv(Variable)
	}
	if dir == "" {
		root, err := devstack.RepositoryRoot()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(root, ".earshot")
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", errors.Wrap(err, "find the state directory")
	}
	return Dir(absolute), nil
}

// ShortPath returns a path below the current directory as a relative path, and any other path
// unchanged.
func ShortPath(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	relative, err := filepath.Rel(here, path)
	if err != nil || strings.HasPrefix(relative, "..") {
		return path
	}
	return relative
}

// Command returns an earshot command line for this directory, ready to paste.
func (d Dir) Command(words string) string {
	line := Program() + " " + words
	if root, err := devstack.RepositoryRoot(); err == nil && string(d) == filepath.Join(root, ".earshot") {
		return line
	}
	return line + " --dir " + ShellWord(ShortPath(string(d)))
}

// Program returns the name under which this program was called.
func Program() string {
	if !strings.Contains(os.Args[0], "/") {
		return os.Args[0]
	}
	path, err := filepath.Abs(os.Args[0])
	if err != nil {
		return os.Args[0]
	}
	return ShellWord(ShortPath(path))
}
