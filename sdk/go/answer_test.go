package earshot

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// unplugged is a transport without a network. Nothing in it changes while it is printed.
type unplugged struct{}

func (unplugged) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("unplugged")
}

func TestTheKeyIsInNothingThatIsPrinted(t *testing.T) {
	t.Parallel()
	_, c := serve(t, func(o *Options) { o.HTTPClient = &http.Client{Transport: unplugged{}} }, answer{})
	_, err := c.Posts.Get(t.Context(), "pst_1")
	if outcome(err) != "CONNECTION" {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, value := range []any{c, *c, c.Posts, *c.Posts, *c.Posts.core, err} {
			if text := fmt.Sprintf(format, value); strings.Contains(text, "hush") {
				t.Errorf(format+" prints %s", value, text)
			}
		}
	}
}

func TestAConnectionErrorNamesMethodAndPathButNotQueryOrServer(t *testing.T) {
	t.Parallel()
	for _, transport := range []http.RoundTripper{unplugged{}, http.DefaultTransport} {
		_, c := serve(t, func(o *Options) {
			o.BaseURL, o.HTTPClient = "http://localhost:0/tenant", &http.Client{Transport: transport}
		}, answer{})
		for _, err := range c.Contacts.List(t.Context(), ListContactsParams{Q: "ada"}).All() {
			text := err.Error()
			if !strings.Contains(text, "GET /v1/contacts: ") || strings.Contains(text, "ada") || strings.Contains(text, "tenant") {
				t.Error(text)
			}
		}
	}
}

func TestAListThatIsNoneIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s, c := serve(t, nil, answering(200, `{"data":{}}`), answering(200, `{"data":[{"externalUserId":"u"}]}`))
	results, err := c.Contacts.IdentifyBatch(t.Context(), IdentifyContactsRequest{})
	if err != nil || len(results) != 1 || len(s.waits) != 1 {
		t.Errorf("%v and %v after waits of %v", results, err, s.waits)
	}
}
