package mail

import (
	"os"
	"path/filepath"
)

// mailbox is a directory that takes messages in place of a mail server. Each message is a file that
// mail programs open. A message that is sent again replaces its file.
type mailbox string

// write returns the file's path. It creates a missing directory, readable by its owner only. A
// reader sees the whole file or none.
func (b mailbox) write(l letter) (path string, err error) {
	if err := os.MkdirAll(string(b), 0o700); err != nil {
		return "", err
	}
	fresh, err := os.CreateTemp(string(b), ".new-*") // with mode 0600
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(fresh.Name()) }() // no longer there after the rename
	_, err = fresh.Write(l.text)
	if closed := fresh.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return "", err
	}
	path = filepath.Join(string(b), l.id+".eml")
	return path, os.Rename(fresh.Name(), path)
}
