package apptest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/access"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
)

// Tenant is an organization with its API keys, from a test's view.
type Tenant struct {
	Organization *db.Organization
	Owner        *db.User
	// Key has the scope read:write, ReadKey the scope read.
	Key, ReadKey string

	App *App
	// http checks every answer against the contract.
	http *http.Client
}

// Tenant creates an organization on the business plan.
func (a *App) Tenant(t testing.TB) *Tenant { return a.TenantOn(t, "business") }

// TenantOn creates an organization on a plan.
func (a *App) TenantOn(t testing.TB, plan string) *Tenant {
	t.Helper()
	org, owner, err := a.Access.CreateOrganization(t.Context(), access.NewOrganization{
		Name: "Acme", Plan: plan, OwnerEmail: "owner@example.com", OwnerName: "Olive Owner",
	})
	require.NoError(t, err)
	n := &Tenant{Organization: org, Owner: owner, App: a, http: &http.Client{Transport: Contract(t)}}
	n.Key = n.NewKey(t, access.NewAPIKey{Name: "test", Scope: "read:write"})
	n.ReadKey = n.NewKey(t, access.NewAPIKey{Name: "test", Scope: "read"})
	return n
}

// Context returns a context with the organization, for the store.
func (n *Tenant) Context(ctx context.Context) context.Context {
	return postgres.WithOrganization(ctx, n.Organization.ID)
}

// NewKey creates an API key of the owner and returns the secret.
func (n *Tenant) NewKey(t testing.TB, k access.NewAPIKey) string {
	t.Helper()
	k.User = n.Owner.ID
	key, _, err := n.App.Access.CreateAPIKey(n.Context(t.Context()), k)
	require.NoError(t, err)
	return key
}

// Limit gives the organization's keys a limit of their own. Call it before their first request, because the
// service remembers keys.
func (n *Tenant) Limit(t testing.TB, requestsPerMinute int) {
	t.Helper()
	require.NoError(t, n.App.Store.Client().APIKey.Update().SetRateLimit(requestsPerMinute).Exec(n.Context(t.Context())))
}

// Answer is the result of Do.
type Answer struct {
	Status int
	Header http.Header
	// Body is the decoded JSON. Numbers are json.Number.
	Body map[string]any
	Raw  []byte
}

// Data returns the member "data" of the body.
func (a Answer) Data() map[string]any {
	data, _ := a.Body["data"].(map[string]any)
	return data
}

// Code returns the error's code, or "" without an error.
func (a Answer) Code() string { return text(a.error()["code"]) }

// Details returns the error's details.
func (a Answer) Details() map[string]any {
	details, _ := a.error()["details"].(map[string]any)
	return details
}

// Fields returns the names of the fields that validation refused, in order.
func (a Answer) Fields() []string {
	list, _ := a.Details()["fields"].([]any)
	names := make([]string, len(list))
	for i, f := range list {
		field, _ := f.(map[string]any)
		names[i] = text(field["field"])
	}
	return names
}

func (a Answer) error() map[string]any {
	e, _ := a.Body["error"].(map[string]any)
	return e
}

func text(v any) string { s, _ := v.(string); return s }

// Do sends a request with the read:write key. It encodes the body as JSON, unless the body is nil,
// a string, bytes or a reader. The bytes of a reader are sent in chunks. Header pairs are set last
// and take precedence.
func (n *Tenant) Do(t testing.TB, method, path string, body any, header ...string) Answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, n.App.URL+path, reader(t, body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+n.Key)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i+1] == "" {
			r.Header.Del(header[i])
		}
	}
	answer, err := n.http.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	a := Answer{Status: answer.StatusCode, Header: answer.Header, Raw: raw}
	if isJSON(answer) {
		require.NoError(t, decodeJSON(raw, &a.Body), "%s", raw)
	}
	return a
}

// Make sends a request that must succeed and returns its data.
func (n *Tenant) Make(t testing.TB, method, path string, body any) map[string]any {
	t.Helper()
	a := n.Do(t, method, path, body)
	require.Less(t, a.Status, 300, "%s %s: %s", method, path, a.Raw)
	return a.Data()
}

// ID creates a resource and returns its id.
func (n *Tenant) ID(t testing.TB, path string, body any) string {
	t.Helper()
	return text(n.Make(t, http.MethodPost, path, body)["id"])
}

// Register registers a webhook for the receiver and returns its id. From now on the receiver checks
// the signatures.
func (n *Tenant) Register(t testing.TB, r *testkit.Receiver, events ...string) string {
	t.Helper()
	made := n.Make(t, http.MethodPost, "/v1/webhooks", map[string]any{"url": r.URL, "events": events})
	r.Verify(text(made["secret"]))
	return text(made["id"])
}

// Recovered starts a recovery of the webhook, stops it, and returns its id.
func (n *Tenant) Recovered(t testing.TB, webhook string) string {
	t.Helper()
	id, err := publicid.Parse[publicid.Recovery](
		n.ID(t, "/v1/webhooks/"+webhook+"/recover", map[string]any{"since": "2026-03-12T10:41:07Z"}))
	require.NoError(t, err)
	require.NoError(t, n.App.Webhooks.CancelRecovery(t.Context(), id))
	return id.String()
}

func reader(t testing.TB, body any) io.Reader {
	t.Helper()
	switch b := body.(type) {
	case nil:
		return nil
	case string:
		return bytes.NewReader([]byte(b))
	case []byte:
		return bytes.NewReader(b)
	case io.Reader:
		return b
	}
	raw, err := json.Marshal(body)
	require.NoError(t, err)
	return bytes.NewReader(raw)
}

func decodeJSON(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return errors.Wrap(err, "decode the answer")
	}
	return nil
}
