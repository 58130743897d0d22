package apptest

import (
	"testing"

	"earshot/api"
	"earshot/ent/db"
	"earshot/internal/access"
)

// Object is a JSON object as tests write and read it.
type Object = map[string]any

// Together runs tests in parallel against one running service. Each gets an
// organization of its own, as wrap makes it.
func Together[T any](t *testing.T, wrap func(*Tenant) T, tests map[string]func(*testing.T, T), environ ...string) {
	t.Helper()
	app := Start(t, Options{Environ: environ})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, wrap(app.Tenant(t)))
		})
	}
}

// As is the organization through a key of another member.
func (n *Tenant) As(t testing.TB, member *db.User) *Tenant {
	t.Helper()
	same := *n
	same.Owner = member
	same.Key = same.NewKey(t, access.NewAPIKey{Name: "test", Scope: "read:write"})
	return &same
}

// UseCases are those of the service, for an API of the test's own.
func (a *App) UseCases() api.UseCases {
	return api.UseCases{Access: a.Access, Contacts: a.Contacts, Feedback: a.Feedback, Webhooks: a.Webhooks, Subjects: a.Subjects, Widget: a.Widget}
}
