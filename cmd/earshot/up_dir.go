package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"

	"earshot/internal/devstack"
)

// dirVariable selects the state directory, like --dir.
const dirVariable = "EARSHOT_DIR"

// Destinations of e-mails: a mail server, or a directory in development.
const (
	smtpVariable    = "EARSHOT_SMTP_URL"
	mailDirVariable = "EARSHOT_MAIL_DIR"
)

// stateDir is the directory of one development stack. It contains the data of both servers, the
// settings that `earshot up` made, and the logs. Its bin directory contains built programs and
// belongs to the build.
type stateDir string

func (d stateDir) file(name string) string { return filepath.Join(string(d), name) }

func (d stateDir) lock() string       { return d.file("up.lock") }
func (d stateDir) devEnv() string     { return d.file("dev.env") }
func (d stateDir) secretsEnv() string { return d.file("secrets.env") }
func (d stateDir) serviceLog() string { return d.file("earshot.log") }
func (d stateDir) upLog() string      { return d.file("up.log") } // output of a detached `up`
func (d stateDir) postgres() string   { return d.file("postgres") }
func (d stateDir) temporal() string   { return d.file("temporal") }
func (d stateDir) listenID() string   { return d.file("listen-id") }
func (d stateDir) mail() string       { return d.file("mail") } // e-mails that weren't sent

func addDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", "", "state directory (default .earshot in the repository; "+dirVariable+" sets it too)")
	_ = cmd.MarkFlagDirname("dir")
}

// findStateDir returns the absolute path of the state directory. It uses the flag, then the
// environment, then the repository.
func findStateDir(flag string, environ lookup) (stateDir, error) {
	dir := flag
	if dir == "" {
		dir, _ = environ.LookupEnv(dirVariable)
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
	return stateDir(absolute), nil
}

// shortPath returns a path below the current directory as a relative path, and any other path
// unchanged.
func shortPath(path string) string {
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

// command returns an earshot command line for this directory, ready to paste.
func (d stateDir) command(words string) string {
	line := program() + " " + words
	if root, err := devstack.RepositoryRoot(); err == nil && string(d) == filepath.Join(root, ".earshot") {
		return line
	}
	return line + " --dir " + shellWord(shortPath(string(d)))
}

// program returns the name under which this program was called.
func program() string {
	if !strings.Contains(os.Args[0], "/") {
		return os.Args[0]
	}
	path, err := filepath.Abs(os.Args[0])
	if err != nil {
		return os.Args[0]
	}
	return shellWord(shortPath(path))
}
