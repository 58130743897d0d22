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

// reading is the shortest time that a person needs for a form. The service asks faster visitors to
// send it again.
const reading = 2100 * time.Millisecond

// Site is an organization's public boards.
type Site struct {
	// URL is the service's own address. Origin is its configured public address.
	URL, Origin string
	// Home is the path of the organization's page.
	Home string
}

// browser is a visitor's browser, with its own network address.
type browser struct {
	site   Site
	from   string
	client *http.Client
}

func (s Site) browser(n int) *browser {
	return &browser{s, fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255), newClient()}
}

// request sends one request as a browser would.
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

// open requests a page until it is answered.
func (b *browser) open(ctx context.Context, path string) (page answer, err error) {
	err = insist(ctx, func(ctx context.Context) error {
		page, err = b.request(ctx, http.MethodGet, path, nil)
		return err
	})
	return page, err
}

// form returns the fields of a page's form with their values, including hidden ones.
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
