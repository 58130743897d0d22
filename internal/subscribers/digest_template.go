package subscribers

import (
	"embed"
	"encoding/json"
	htmltemplate "html/template"
	"strings"
	texttemplate "text/template"

	"github.com/go-faster/errors"
)

//go:embed messages templates
var files embed.FS

// Languages are the languages of e-mails. The first is the default.
var Languages = []string{"en", "de"}

// content is the content of a digest. It contains texts of organizations and users, so only templates
// may print it. The HTML template escapes it.
type content struct {
	Organization, Home, Color string
	Posts, Entries            []news
	// More is true if the e-mail does not show all news.
	More                     bool
	Preferences, Unsubscribe string
}

// news is a post with its current status, or a changelog entry.
type news struct{ Link, Title, Status, Version string }

// digestTemplate holds the templates of a digest in one language.
type digestTemplate struct {
	words map[string]string
	text  *texttemplate.Template
	html  *htmltemplate.Template
}

func loadTemplates() (map[string]*digestTemplate, error) {
	all := map[string]*digestTemplate{}
	for _, language := range Languages {
		p, err := loadTemplate(language)
		if err != nil {
			return nil, errors.Wrap(err, "load the e-mails in "+language)
		}
		all[language] = p
	}
	return all, nil
}

func loadTemplate(language string) (*digestTemplate, error) {
	raw, err := files.ReadFile("messages/" + language + ".json")
	if err != nil {
		return nil, errors.Wrap(err, "read the messages")
	}
	p := &digestTemplate{}
	if err := json.Unmarshal(raw, &p.words); err != nil {
		return nil, errors.Wrap(err, "decode the messages")
	}
	functions := map[string]any{
		"t": p.message, "lang": func() string { return language },
		// Titles may contain line breaks, which would break the plain text.
		"line": func(text string) string { return strings.Join(strings.Fields(text), " ") },
	}
	if p.text, err = texttemplate.New("digest.txt").Funcs(functions).ParseFS(files, "templates/digest.txt"); err != nil {
		return nil, errors.Wrap(err, "parse the text")
	}
	if p.html, err = htmltemplate.New("digest.html").Funcs(functions).ParseFS(files, "templates/digest.html"); err != nil {
		return nil, errors.Wrap(err, "parse the HTML")
	}
	return p, nil
}

// message returns the message of a key with the value in its placeholder.
func (p *digestTemplate) message(key string, value ...string) string {
	text := p.words[key]
	if len(value) > 0 {
		text = strings.Replace(text, "{}", value[0], 1)
	}
	return text
}

// subject returns the subject of a digest. For a single item, it names the status or the publication.
// Strangers may get the e-mail from the operator's mail server, so the subject contains no text that
// the organization can choose, such as a title. Only the operator can set the organization's name.
func (p *digestTemplate) subject(c *content) string {
	switch {
	case len(c.Posts) == 1 && len(c.Entries) == 0:
		return c.Organization + " – " + p.message("status."+c.Posts[0].Status)
	case len(c.Entries) == 1 && len(c.Posts) == 0:
		return c.Organization + " – " + p.message("published")
	}
	return p.message("subject", c.Organization)
}
