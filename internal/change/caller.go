package change

import (
	"context"

	"earshot/ent/db"
	"earshot/ent/db/apikey"
	"earshot/internal/postgres"
)

// Caller is the author of a request: a member of an organization, with one of its API keys.
type Caller struct {
	Organization *db.Organization
	User         *db.User
	Key          *db.APIKey
}

// CanWrite reports whether the key's scope covers changes.
func (c *Caller) CanWrite() bool { return c.Key.Scope == apikey.ScopeReadWrite }

type callerKey struct{}

// WithCaller limits the context to the caller's organization and makes the caller available to use
// cases.
func WithCaller(ctx context.Context, c *Caller) context.Context {
	return postgres.WithOrganization(context.WithValue(ctx, callerKey{}, c), c.Organization.ID)
}

// CallerOf returns the caller that WithCaller set. It panics without one, which can happen only on
// a route without authentication.
func CallerOf(ctx context.Context) *Caller { return ctx.Value(callerKey{}).(*Caller) }
