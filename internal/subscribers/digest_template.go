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

// Languages are those in which e-mails are written. The first is for who has chosen none.
var Languages = []string{"en", "de"}

// content is what an e-mail tells. What organizations and users wrote is in it, so only templates show
// it: the one of HTML escapes it.
type content struct {
	Organization, Home, Color string
	Posts, Entries            []news
	// More is that there is more than the e-mail shows.
	More                     bool
	Preferences, Unsubscribe string
}

// news is a post with its status now, or an entry of a changelog.
type news struct{ Link, Title, Status, Version string }

// digestTemplate is an e-mail in a language, to be filled.
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
		// A title is one line of the text, whatever its writer put in.
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

// message is the message with a key, and the value in the place for it.
func (p *digestTemplate) message(key string, value ...string) string {
	text := p.words[key]
	if len(value) > 0 {
		text = strings.Replace(text, "{}", value[0], 1)
	}
	return text
}

// subject says what there is to tell where it is one thing. It has no text that the organization can
// choose, such as a title: anybody's mailbox shows it, under the name of the operator's mail server. The
// name of the organization is the operator's to set.
func (p *digestTemplate) subject(c *content) string {
	switch {
	case len(c.Posts) == 1 && len(c.Entries) == 0:
		return c.Organization + " – " + p.message("status."+c.Posts[0].Status)
	case len(c.Entries) == 1 && len(c.Posts) == 0:
		return c.Organization + " – " + p.message("published")
	}
	return p.message("subject", c.Organization)
}
