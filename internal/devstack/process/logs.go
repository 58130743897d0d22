package process

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-faster/errors"
)

const (
	// tailBytes is the size of the part that Tail reads: about 300 long lines.
	tailBytes = 64 << 10
	// failureLines is the number of lines of a log in an error message. Servers log the cause of a
	// failure in their last few lines.
	failureLines = 15
)

// Tail returns the last lines of the file, without the final newline, for an error message. It reads
// only the last 64 KiB. If the file can't be read, it returns one line with that error.
func Tail(path string) string {
	text, err := lastBytes(path, tailBytes)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return LastLines(text)
}

// LastLines returns the last lines of the text, without the final newline, for an error message.
func LastLines(text string) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-failureLines):], "\n")
}

func lastBytes(path string, limit int64) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if _, err := file.Seek(max(0, info.Size()-limit), io.SeekStart); err != nil {
		return "", err
	}
	content, err := io.ReadAll(io.LimitReader(file, limit))
	return string(content), err
}

// NewLog opens an empty log and keeps the previous one as path.old. After a crash the cause is in
// the log of the previous run.
func NewLog(path string) (*os.File, error) {
	if err := os.Rename(path, path+".old"); err != nil && !os.IsNotExist(err) {
		return nil, errors.Wrap(err, "keep the previous log")
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, errors.Wrap(err, "open log")
	}
	return file, nil
}
