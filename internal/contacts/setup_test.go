package contacts_test

import (
	"testing"

	"earshot/internal/testkit/apptest"
)

func TestMain(m *testing.M) { apptest.Main(m) }

type object = map[string]any

// tenant is an organization with the helpers of these tests.
type tenant struct{ *apptest.Tenant }

// capped lets an organization on the free plan have three contacts.
var capped = apptest.Shared{Environ: []string{"EARSHOT_CONTACT_CAP_FREE=3"}}

func together(t *testing.T, tests map[string]func(*testing.T, *tenant)) {
	t.Helper()
	togetherOn(t, apptest.Start(t, apptest.Options{}), tests)
}

func togetherOn(t *testing.T, app *apptest.App, tests map[string]func(*testing.T, *tenant)) {
	t.Helper()
	apptest.Together(t, app, func(_ *testing.T, n *apptest.Tenant) *tenant { return &tenant{n} }, tests)
}

// on returns a tenant on another plan in the same service.
func (n *tenant) on(t *testing.T, plan string) *tenant {
	t.Helper()
	return &tenant{n.App.TenantOn(t, plan)}
}
