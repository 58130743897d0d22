package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"

	"earshot/internal/devstack"
)

// dirVariable chooses the state directory like --dir does.
const dirVariable = "EARSHOT_DIR"

// Where the service sends e-mails, or writes them where it doesn't.
const (
	smtpVariable    = "EARSHOT_SMTP_URL"
	mailDirVariable = "EARSHOT_MAIL_DIR"
)

// stateDir is the directory of one development stack: the data of both
// servers, the settings that `earshot up` made, and the logs. Its bin holds
// built programs and belongs to the build.
type stateDir string

func (d stateDir) file(name string) string { return filepath.Join(string(d), name) }

func (d stateDir) lock() string       { return d.file("up.lock") }
func (d stateDir) devEnv() string     { return d.file("dev.env") }
func (d stateDir) secretsEnv() string { return d.file("secrets.env") }
func (d stateDir) serviceLog() string { return d.file("earshot.log") }
func (d stateDir) upLog() string      { return d.file("up.log") } // what a detached `up` says
func (d stateDir) postgres() string   { return d.file("postgres") }
func (d stateDir) temporal() string   { return d.file("temporal") }
func (d stateDir) listenID() string   { return d.file("listen-id") }
func (d stateDir) mail() string       { return d.file("mail") } // e-mails that weren't sent

func addDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", "", "state directory (default .earshot in the repository; "+dirVariable+" sets it too)")
	_ = cmd.MarkFlagDirname("dir")
}

// findStateDir returns what the flag, the environment or the repository say, in
// this order, as an absolute path.
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

// shortPath is the path as a person in the current directory types it.
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

// command is an earshot command line that, pasted, means this directory.
func (d stateDir) command(words string) string {
	line := program() + " " + words
	if root, err := devstack.RepositoryRoot(); err == nil && string(d) == filepath.Join(root, ".earshot") {
		return line
	}
	return line + " --dir " + shellWord(shortPath(string(d)))
}

// program is how the person called this one.
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
