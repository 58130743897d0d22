package outside

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"golang.org/x/net/html"
)

// reading is how long a person takes for a form at least. Who is quicker is asked to send it again.
const reading = 2100 * time.Millisecond

// Site is an organization's public boards.
type Site struct {
	// URL is where the service listens, Origin where its operator says that readers find it.
	URL, Origin string
	// Home is the organization's page, as a path.
	Home string
}

// browser is a visitor's, of a network of its own.
type browser struct {
	site   Site
	from   string
	client *http.Client
}

func (s Site) browser(n int) *browser {
	return &browser{s, fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255), newClient()}
}

// request sends what a person had the browser send, once.
func (b *browser) request(ctx context.Context, method, path string, form url.Values) (answer, error) {
	q, err := http.NewRequestWithContext(ctx, method, b.site.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		return answer{}, errors.Wrap(err, "make a request")
	}
	q.Header.Set("X-Forwarded-For", b.from)
	q.Header.Set("Accept-Language", "en")
	q.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		q.Header.Set("Origin", b.site.Origin)
	}
	return ask(b.client, q)
}

// open insists on a page.
func (b *browser) open(ctx context.Context, path string) (page answer, err error) {
	err = insist(ctx, func(ctx context.Context) error {
		page, err = b.request(ctx, http.MethodGet, path, nil)
		return err
	})
	return page, err
}

// form are the fields of a page's form as they stand there, also those that a person doesn't see.
func (a answer) form() (url.Values, error) {
	document, err := html.Parse(bytes.NewReader(a.body))
	if err != nil {
		return nil, errors.Wrap(err, "read a page")
	}
	fields := url.Values{}
	for n := range document.Descendants() {
		if n.Type != html.ElementNode || n.Data != "input" && n.Data != "textarea" {
			continue
		}
		attributes := map[string]string{}
		for _, one := range n.Attr {
			attributes[one.Key] = one.Val
		}
		if name := attributes["name"]; name != "" && attributes["type"] != "checkbox" {
			fields.Set(name, attributes["value"])
		}
	}
	if len(fields) == 0 {
		return nil, errors.Errorf("a page has no form: %d: %s", a.status, a.body)
	}
	return fields, nil
}
