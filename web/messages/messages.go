// Package messages has the texts of the pages in each language.
package messages

import (
	"embed"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"golang.org/x/text/language"
)

//go:embed *.json
var files embed.FS

// Languages are the languages of the pages. The first is the default.
var Languages = []language.Tag{language.English, language.German}

// matcher picks the best language for a reader.
var matcher = language.NewMatcher(Languages)

// Words are the messages of one language, by key.
type Words struct {
	// Tag is the language.
	Tag   language.Tag
	texts map[string]string
}

// Load reads the messages of a language.
func Load(tag language.Tag) (*Words, error) {
	file, err := files.ReadFile(tag.String() + ".json")
	if err != nil {
		return nil, errors.Wrap(err, "read the messages")
	}
	w := &Words{Tag: tag}
	if err := json.Unmarshal(file, &w.texts); err != nil {
		return nil, errors.Wrap(err, "decode the messages of "+tag.String())
	}
	return w, nil
}

// maxAcceptLanguage is longer than any browser's header. The parser's time grows with each entry.
const maxAcceptLanguage = 500

// Best returns the index of the best language for an Accept-Language header.
func Best(header string) int {
	if len(header) > maxAcceptLanguage {
		return 0
	}
	wanted, _, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return 0
	}
	_, i, confidence := matcher.Match(wanted...)
	if confidence == language.No {
		return 0
	}
	return i
}

// Text returns the message with the key and puts the value into its placeholder. A missing message
// shows its key, so that the error is visible.
func (w *Words) Text(key string, value ...string) string {
	text, ok := w.texts[key]
	if !ok {
		return key
	}
	if len(value) > 0 {
		text = strings.Replace(text, "{}", value[0], 1)
	}
	return text
}

// Count returns the message for a number of things.
func (w *Words) Count(key string, n int) string {
	if n == 1 {
		return w.Text(key + ".one")
	}
	return w.Text(key+".other", strconv.Itoa(n))
}

// Date formats a time in words, in UTC, for readers without scripts.
func (w *Words) Date(at time.Time) string {
	at = at.UTC()
	return strings.NewReplacer(
		"{year}", strconv.Itoa(at.Year()), "{month}", w.Text("month."+strconv.Itoa(int(at.Month()))),
		"{day}", strconv.Itoa(at.Day()), "{time}", at.Format("15:04"),
	).Replace(w.Text("date"))
}
