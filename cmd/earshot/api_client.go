package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"earshot/internal/config"
	"earshot/internal/devstack/statedir"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"
)

// apiCallTimeout exceeds the longest waits of a write in the service: 5 s in its queue and 10 s for
// a lock.
const apiCallTimeout = 30 * time.Second

// apiClient sends requests to a running service over HTTP with an API key, like any integration.
type apiClient struct {
	url, key string
}

// apiFlags select the service that a command talks to.
type apiFlags struct{ url, key, dir string }

func (f *apiFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.url, "url", "", "base address of the service (default the stack of `earshot up`; "+statedir.BaseURLVariable+" sets it too)")
	cmd.Flags().StringVar(&f.key, "key", "", "API key with the scope read:write (default the stack's; "+statedir.KeyVariable+" sets it too)")
	addDirFlag(cmd, &f.dir)
}

// client takes the address and the key from the flags, the environment, or the settings of the
// stack. The stack's key is sent only to the stack: if an address is given, a key must be given
// too.
func (f *apiFlags) client(environ config.Environ) (*apiClient, error) {
	fromEnviron := func(flag, name string) string {
		value, _ := environ.LookupEnv(name)
		return cmp.Or(flag, value)
	}
	c := &apiClient{url: fromEnviron(f.url, statedir.BaseURLVariable), key: fromEnviron(f.key, statedir.KeyVariable)}
	if c.url == "" {
		dir, err := statedir.Find(f.dir, environ)
		if err != nil {
			return nil, err
		}
		values, err := statedir.ReadEnv(dir.DevEnv())
		if err != nil {
			return nil, err
		}
		c.url = values[statedir.BaseURLVariable]
		c.key = cmp.Or(c.key, values[statedir.KeyVariable])
		if c.url == "" {
			return nil, errors.Errorf("there is no stack in %s: start it with `%s`, or name a service by --url and --key",
				statedir.ShortPath(string(dir)), dir.Command("up"))
		}
	}
	if c.key == "" {
		return nil, errors.Errorf("%s needs an API key: set %s, or --key", c.url, statedir.KeyVariable)
	}
	c.url = strings.TrimSuffix(c.url, "/")
	return c, nil
}

// call sends a request and decodes the data of the answer. An error answer of the service becomes
// an error with the service's message.
func (c *apiClient) call(ctx context.Context, method, path string, body, data any) error {
	_, err := c.do(ctx, method, path, body, data)
	return err
}

// page reads one page of a list and returns the cursor of the next page, which is empty after the
// last page.
func (c *apiClient) page(ctx context.Context, path, cursor string, data any) (next string, err error) {
	if cursor != "" {
		path += "?" + url.Values{"cursor": {cursor}}.Encode()
	}
	answer, err := c.do(ctx, http.MethodGet, path, nil, data)
	return answer.NextCursor, err
}

func (c *apiClient) do(ctx context.Context, method, path string, body, data any) (answer apiAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, apiCallTimeout)
	defer cancel()
	request, err := c.request(ctx, method, path, body)
	if err != nil {
		return answer, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer, errors.Wrap(err, "ask the service")
	}
	defer func() { _ = response.Body.Close() }()
	answer.Data = data
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return answer, errors.Errorf("%s %s: %s answered %s, and not as the service does", method, path, c.url, response.Status)
	}
	if answer.Error.Code != "" {
		return answer, &refusal{answer.Error.Code, fmt.Sprintf("%s %s: %s", method, path, answer.problem())}
	}
	return answer, nil
}

func (c *apiClient) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	text := []byte(nil)
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, errors.Wrap(err, "encode a request")
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(text))
	if err != nil {
		return nil, errors.Errorf("%s is not the address of a service", c.url)
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

// refusal is an error answer of the service.
type refusal struct{ code, text string }

func (r *refusal) Error() string { return r.text }

// apiAnswer is the envelope of every answer: data or an error.
type apiAnswer struct {
	Data       any    `json:"data"`
	NextCursor string `json:"nextCursor"`
	Error      struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Details struct {
			Fields []struct{ Field, Message string } `json:"fields"`
		} `json:"details"`
	} `json:"error"`
}

func (a apiAnswer) problem() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)", a.Error.Message, a.Error.Code)
	for _, f := range a.Error.Details.Fields {
		fmt.Fprintf(&b, "; %s %s", f.Field, f.Message)
	}
	return b.String()
}
