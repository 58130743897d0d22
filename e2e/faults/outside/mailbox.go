package outside

import (
	"context"
	"io"
	"maps"
	"mime/quotedprintable"
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/go-faster/errors"
)

// Mailbox is a directory with one file for each e-mail. A repeated e-mail has the same Message-ID
// and replaces the first.
type Mailbox struct {
	dir string

	mu sync.Mutex
	// first maps files to the letters as they arrived.
	first map[string]Letter
}

// NewMailbox returns the mailbox of a directory, which may not exist yet.
func NewMailbox(dir string) *Mailbox { return &Mailbox{dir: dir, first: map[string]Letter{}} }

// Letter is an e-mail, usually with a link.
type Letter struct {
	// ID is its Message-ID.
	ID          string
	To, Subject string
	// Link is the path of the link, with its token.
	Link string
}

var linkInMail = regexp.MustCompile(`https?://\S+/-/confirm\?token=\S+`)

// Now returns the letters as they are at present, by file.
func (m *Mailbox) Now() (map[string]Letter, error) { return m.read(map[string]Letter{}) }

// First returns the letters as they were when they were first read, by file.
func (m *Mailbox) First() (map[string]Letter, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read(m.first)
}

// read adds the letters of new files.
func (m *Mailbox) read(known map[string]Letter) (map[string]Letter, error) {
	files, err := filepath.Glob(filepath.Join(m.dir, "*.eml"))
	if err != nil {
		return nil, errors.Wrap(err, "look into the mailbox")
	}
	for _, name := range files {
		if _, ok := known[name]; ok {
			continue
		}
		if known[name], err = readLetter(name); err != nil {
			return nil, err
		}
	}
	return maps.Clone(known), nil
}

// await waits for a letter to an address.
func (m *Mailbox) await(ctx context.Context, to string) (Letter, error) {
	for {
		all, err := m.First()
		if err != nil {
			return Letter{}, err
		}
		for _, one := range all {
			if one.To == to && one.Link != "" {
				return one, nil
			}
		}
		if err := pause(ctx, againPause); err != nil {
			return Letter{}, err
		}
	}
}

// hasLink reports whether a link for the interaction has arrived. The e-mail's subject names the kind.
func (m *Mailbox) hasLink(w *Interaction) (bool, error) {
	all, err := m.First()
	for _, one := range all {
		if one.To == w.Email && one.Link != "" && strings.Contains(one.Subject, string(w.Kind)) {
			return true, err
		}
	}
	return false, err
}

// readLetter reads an e-mail. Link is empty if it has none.
func readLetter(name string) (one Letter, err error) {
	file, err := os.Open(name)
	if err != nil {
		return one, errors.Wrap(err, "open an e-mail")
	}
	defer func() { _ = file.Close() }()
	message, err := mail.ReadMessage(file)
	if err != nil {
		return one, errors.Wrap(err, "read an e-mail")
	}
	text, err := io.ReadAll(quotedprintable.NewReader(message.Body))
	if err != nil {
		return one, errors.Wrap(err, "read an e-mail's text")
	}
	to, err := mail.ParseAddress(message.Header.Get("To"))
	if err != nil {
		return one, errors.Wrap(err, "read an e-mail's address")
	}
	one = Letter{ID: strings.TrimSpace(message.Header.Get("Message-ID")), To: to.Address, Subject: message.Header.Get("Subject")}
	link, err := url.Parse(linkInMail.FindString(string(text)))
	if err != nil {
		return one, errors.Wrap(err, "read an e-mail's link")
	}
	one.Link = link.RequestURI()
	if link.Path == "" {
		one.Link = ""
	}
	return one, nil
}
