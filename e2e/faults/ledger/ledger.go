// Package ledger is the receiver's book: a file to which an entry is appended for
// all that happens to a request, and nothing is ever changed. The checker holds it
// against the database.
//
// An entry is a line of JSON, written by one call, so that lines of many goroutines
// never mix. It isn't flushed to the disk: the receiver is never killed, and the
// machine isn't either.
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

// Kind says what happened to a request.
type Kind string

// A request that was read has arrived, and then it is answered or broken. One that
// couldn't be read is broken only.
const (
	// Arrived: the whole request was read.
	Arrived Kind = "arrived"
	// Answered: the whole answer was written, without an error.
	Answered Kind = "answered"
	// Broken: it couldn't be read, or couldn't be answered.
	Broken Kind = "broken"
)

// Entry is a line of the ledger.
type Entry struct {
	// At is the receiver's clock.
	At   time.Time `json:"at"`
	Kind Kind      `json:"kind"`
	// Request numbers the receiver's requests from 1 and ties entries together.
	Request int64 `json:"request"`
	// Endpoint is the last part of the path.
	Endpoint string `json:"endpoint"`
	// Delivery and Event are the headers X-Service-Delivery and X-Service-Event.
	Delivery string `json:"delivery"`
	Event    string `json:"event"`
	// Sum is the SHA-256 of the raw body, in hex.
	Sum string `json:"sum"`
	// Subject is the id of what the payload tells of: a post, a comment, ….
	Subject string `json:"subject"`
	// Signed says that the signature checks with the endpoint's secret.
	Signed bool `json:"signed"`
	// Status is what was answered; 0 unless the kind is Answered.
	Status int `json:"status"`
}

// Writer appends to a ledger. It is safe for concurrent use.
type Writer struct{ file *os.File }

// Create makes a ledger; it refuses a path where there is something.
func Create(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the ledger: %w", err)
	}
	return &Writer{file: f}, nil
}

// Append writes an entry; its time is kept in UTC.
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

// Close ends the writing.
func (w *Writer) Close() error {
	if err := w.file.Close(); err != nil {
		return fmt.Errorf("close the ledger: %w", err)
	}
	return nil
}

// Read goes through a ledger in the order in which it was written. An error ends it;
// a line that is cut off is one.
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
