package webhooks_test

import (
	"testing"

	"earshot/internal/testkit/apptest"
	"earshot/worker"
)

func TestMain(m *testing.M) { apptest.Main(m, apptest.WithWorker(worker.Module)) }

type object = map[string]any

// tenant is an organization with the helpers of these tests.
type tenant struct{ *apptest.Tenant }

// sending is for tests of deliveries that reach their receiver.
var sending = apptest.Shared{Worker: true}

func together(t *testing.T, tests map[string]func(*testing.T, *tenant)) {
	t.Helper()
	apptest.Together(t, apptest.Start(t, apptest.Options{}), func(_ *testing.T, n *apptest.Tenant) *tenant { return &tenant{n} }, tests)
}

// on makes a tenant on another plan in the same service.
func (n *tenant) on(t *testing.T, plan string) *tenant {
	t.Helper()
	return &tenant{n.App.TenantOn(t, plan)}
}
