package apptest

import (
	"testing"

	"earshot/ent/db"
	"earshot/internal/access"
)

// Object is a JSON object in a test.
type Object = map[string]any

// Together runs tests in parallel against one service. Each test gets its own organization,
// converted by wrap.
func Together[T any](t *testing.T, app *App, wrap func(*testing.T, *Tenant) T, tests map[string]func(*testing.T, T)) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, wrap(t, app.Tenant(t)))
		})
	}
}

// As returns the tenant with a key of another member.
func (n *Tenant) As(t testing.TB, member *db.User) *Tenant {
	t.Helper()
	same := *n
	same.Owner = member
	same.Key = same.NewKey(t, access.NewAPIKey{Name: "test", Scope: "read:write"})
	return &same
}
