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

// Mailbox is a directory of e-mails, of which each is a file. One that is sent again takes the place of
// the first: it has the same Message-ID.
type Mailbox struct {
	dir string

	mu sync.Mutex
	// first are the letters by their files, as they were when they came.
	first map[string]Letter
}

// NewMailbox looks into a directory, which may come to be later.
func NewMailbox(dir string) *Mailbox { return &Mailbox{dir: dir, first: map[string]Letter{}} }

// Letter is an e-mail with a link.
type Letter struct {
	// ID is its Message-ID.
	ID          string
	To, Subject string
	// Link is the path of the link, with its token.
	Link string
}

var linkInMail = regexp.MustCompile(`https?://\S+/-/confirm\?token=\S+`)

// Now are the letters with a link as they are now, by their files.
func (m *Mailbox) Now() (map[string]Letter, error) { return m.read(map[string]Letter{}) }

// First are the same as they were when they were first seen.
func (m *Mailbox) First() (map[string]Letter, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read(m.first)
}

// read adds what isn't known yet.
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

// readLetter reads an e-mail; one without a link has none.
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
