package retention_test

import (
	"testing"

	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
	"earshot/internal/testkit/tier"
)

func TestMain(m *testing.M) {
	tier.Properties(20, 30) // 20 lives of a delivery take two seconds
	testkit.Main(m)
}

// outbox is fixture.Outbox with the methods of this package's tests.
type outbox struct{ *fixture.Outbox }

func newOutboxAlone(t *testing.T) *outbox { return &outbox{fixture.NewOutboxAlone(t)} }
