package feedback_test

import (
	"testing"

	"earshot/ent/db"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/fixture"
)

func TestMain(m *testing.M) { apptest.Main(m) }

var (
	// inTurns is for tests that change or count something for all organizations, for example waits for locks.
	inTurns = apptest.Shared{Turns: true}
	// roomy has room for many webhooks, and its database soon ends deadlocks, of which some tests have many. An
	// organization on the free plan can have two contacts.
	roomy = apptest.Shared{Database: fixture.FastDeadlocks, Environ: []string{"EARSHOT_CONTACT_CAP_FREE=2", "EARSHOT_WEBHOOK_CAP=10000"}}
)

type object = map[string]any

// tenant is an organization with the helpers of these tests.
type tenant struct{ *apptest.Tenant }

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

// as returns the tenant with the key of another member.
func (n *tenant) as(t *testing.T, member *db.User) *tenant {
	t.Helper()
	return &tenant{n.As(t, member)}
}
