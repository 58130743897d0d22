package web

import (
	"embed"
	"encoding/json"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"golang.org/x/text/language"
)

//go:embed messages
var messageFiles embed.FS

// languages are the languages of the pages. The first is for readers who want none of them.
var languages = []language.Tag{language.English, language.German}

// matcher finds the one that a reader understands best.
var matcher = language.NewMatcher(languages)

// words are the messages of the pages in a language, by their keys.
type words struct {
	tag   language.Tag
	texts map[string]string
}

func loadWords(tag language.Tag) (*words, error) {
	file, err := messageFiles.ReadFile(path.Join("messages", tag.String()+".json"))
	if err != nil {
		return nil, errors.Wrap(err, "read the messages")
	}
	w := &words{tag: tag}
	if err := json.Unmarshal(file, &w.texts); err != nil {
		return nil, errors.Wrap(err, "decode the messages of "+tag.String())
	}
	return w, nil
}

// maxAcceptLanguage is longer than the header of any browser: the parser takes time for each entry.
const maxAcceptLanguage = 500

// bestLanguage is the index of the language for a reader, by Accept-Language.
func bestLanguage(header string) int {
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

// text is the message with the key, and the value in the place for it. A key that isn't
// there shows itself, so that it is noticed.
func (w *words) text(key string, value ...string) string {
	text, ok := w.texts[key]
	if !ok {
		return key
	}
	if len(value) > 0 {
		text = strings.Replace(text, "{}", value[0], 1)
	}
	return text
}

// count is the message for a number of things.
func (w *words) count(key string, n int) string {
	if n == 1 {
		return w.text(key + ".one")
	}
	return w.text(key+".other", strconv.Itoa(n))
}

// date is a moment in words, in UTC, for readers without scripts.
func (w *words) date(at time.Time) string {
	at = at.UTC()
	return strings.NewReplacer(
		"{year}", strconv.Itoa(at.Year()), "{month}", w.text("month."+strconv.Itoa(int(at.Month()))),
		"{day}", strconv.Itoa(at.Day()), "{time}", at.Format("15:04"),
	).Replace(w.text("date"))
}
