// Package ledger is the receiver's log: a file with an entry for each event of a request. Entries
// are only appended, never changed. The checker compares the file with the database.
//
// One write call writes an entry as a line of JSON, so lines of several goroutines never mix. The
// ledger isn't flushed to the disk, because neither the receiver nor the machine is ever killed.
package ledger

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"time"
)

// Kind is an event of a request.
type Kind string

// A request that was read has the entry Arrived, followed by Answered or Broken. An unreadable
// request has only Broken.
const (
	// Arrived: the whole request was read.
	Arrived Kind = "arrived"
	// Answered: the whole answer was written, without an error.
	Answered Kind = "answered"
	// Broken: the request couldn't be read, or the answer couldn't be written.
	Broken Kind = "broken"
)

// Entry is a line of the ledger.
type Entry struct {
	// At is the time by the receiver's clock.
	At   time.Time `json:"at"`
	Kind Kind      `json:"kind"`
	// Request is the number of the request, from 1. All entries of a request share it.
	Request int64 `json:"request"`
	// Endpoint is the last part of the path.
	Endpoint string `json:"endpoint"`
	// Delivery and Event are the headers X-Service-Delivery and X-Service-Event.
	Delivery string `json:"delivery"`
	Event    string `json:"event"`
	// Sum is the SHA-256 of the raw body, in hex.
	Sum string `json:"sum"`
	// Subject is the id of the payload's object, for example a post or a comment.
	Subject string `json:"subject"`
	// Signed reports whether the signature matches the endpoint's secret.
	Signed bool `json:"signed"`
	// Status is the status of the answer, and 0 unless the kind is Answered.
	Status int `json:"status"`
}

// Writer appends to a ledger. It is safe for concurrent use.
type Writer struct{ file *os.File }

// Create makes a ledger. It returns an error if the path exists.
func Create(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the ledger: %w", err)
	}
	return &Writer{file: f}, nil
}

// Append writes an entry, with its time in UTC.
func (w *Writer) Append(e Entry) error {
	e.At = e.At.UTC()
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode an entry of the ledger: %w", err)
	}
	if _, err := w.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("append to the ledger: %w", err)
	}
	return nil
}

// Close closes the file.
func (w *Writer) Close() error {
	if err := w.file.Close(); err != nil {
		return fmt.Errorf("close the ledger: %w", err)
	}
	return nil
}

// Read yields the entries of a ledger in order. An error ends the sequence. An incomplete line is
// an error.
func Read(path string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(Entry{}, fmt.Errorf("open the ledger: %w", err))
			return
		}
		defer func() { _ = f.Close() }()
		lines := bufio.NewReaderSize(f, 1<<16) // a few hundred lines at a time
		for n := 1; ; n++ {
			e, err := next(lines)
			if err == io.EOF { //nolint:errorlint // next gives it bare, and only where the ledger ends
				return
			}
			if err != nil {
				yield(Entry{}, fmt.Errorf("line %d of the ledger: %w", n, err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func next(lines *bufio.Reader) (e Entry, err error) {
	line, err := lines.ReadBytes('\n')
	if err == io.EOF && len(line) > 0 {
		return e, io.ErrUnexpectedEOF
	}
	if err != nil {
		return e, err
	}
	return e, json.Unmarshal(line, &e)
}
