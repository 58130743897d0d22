// Package messages has the words of the pages, in each of their languages.
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

// Languages are the languages of the pages. The first is for readers who want none of them.
var Languages = []language.Tag{language.English, language.German}

// matcher finds the one that a reader understands best.
var matcher = language.NewMatcher(Languages)

// Words are the messages of the pages in a language, by their keys.
type Words struct {
	// Tag is the language.
	Tag   language.Tag
	texts map[string]string
}

// Load reads the words of a language.
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

// maxAcceptLanguage is longer than the header of any browser: the parser takes time for each entry.
const maxAcceptLanguage = 500

// Best is the index of the language for a reader, by Accept-Language.
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

// Text is the message with the key, and the value in the place for it. A key that isn't
// there shows itself, so that it is noticed.
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

// Count is the message for a number of things.
func (w *Words) Count(key string, n int) string {
	if n == 1 {
		return w.Text(key + ".one")
	}
	return w.Text(key+".other", strconv.Itoa(n))
}

// Date is a moment in words, in UTC, for readers without scripts.
func (w *Words) Date(at time.Time) string {
	at = at.UTC()
	return strings.NewReplacer(
		"{year}", strconv.Itoa(at.Year()), "{month}", w.Text("month."+strconv.Itoa(int(at.Month()))),
		"{day}", strconv.Itoa(at.Day()), "{time}", at.Format("15:04"),
	).Replace(w.Text("date"))
}
