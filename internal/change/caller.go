package change

import (
	"context"

	"earshot/ent/db"
	"earshot/ent/db/apikey"
	"earshot/internal/store"
)

// Caller is who makes a request: a member of an organization, by one of its
// API keys.
type Caller struct {
	Organization *db.Organization
	User         *db.User
	Key          *db.APIKey
}

// CanWrite reports whether the key's scope covers changes.
func (c *Caller) CanWrite() bool { return c.Key.Scope == apikey.ScopeReadWrite }

type callerKey struct{}

// WithCaller limits everything done with the context to the caller's
// organization and lets use cases know who asks.
func WithCaller(ctx context.Context, c *Caller) context.Context {
	return store.WithOrganization(context.WithValue(ctx, callerKey{}, c), c.Organization.ID)
}

// CallerOf is the caller put there by WithCaller. It panics without one, which
// only a route without authentication could cause.
func CallerOf(ctx context.Context) *Caller { return ctx.Value(callerKey{}).(*Caller) }
