package access_test

import (
	"testing"

	"earshot/ent/db"

	"earshot/internal/testkit/apptest"
)

func TestMain(m *testing.M) { apptest.Main(m) }

type object = map[string]any

// tenant is an organization with helpers of these tests.
type tenant struct{ *apptest.Tenant }

func together(t *testing.T, tests map[string]func(*testing.T, *tenant)) {
	t.Helper()
	apptest.Together(t, apptest.Start(t, apptest.Options{}), func(_ *testing.T, n *apptest.Tenant) *tenant { return &tenant{n} }, tests)
}

// on returns a tenant on another plan in the same service.
func (n *tenant) on(t *testing.T, plan string) *tenant {
	t.Helper()
	return &tenant{n.App.TenantOn(t, plan)}
}

// as returns the tenant with a key of another member.
func (n *tenant) as(t *testing.T, member *db.User) *tenant {
	t.Helper()
	return &tenant{n.As(t, member)}
}
