package migrate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

func TestTheIDsOfGuestsThatStoodForAddressesAreRemovedByTheMigration(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	r := fixture.Seed(t, fixture.Open(t, url))
	c := fixture.Connect(t, url)
	_, err := c.Exec(t.Context(), `INSERT INTO users (id, organization_id, email, name, kind, created_at, updated_at)
		SELECT id, $1, id::text, '', 'guest', now(), now() FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 2500)) g`, r.Organization)
	require.NoError(t, err)
	addresses := func(kind string) []string {
		return fixture.Texts(t, c, "SELECT email FROM users WHERE kind = $1 AND email IS NOT NULL", kind)
	}
	require.Len(t, addresses("guest"), 2500)
	members := addresses("member")
	for range 2 { // it may be interrupted, and then runs again
		_, err = c.Exec(t.Context(), up(t, "empty_addresses_of_guests"))
		require.NoError(t, err)
		require.Empty(t, addresses("guest"))
		require.Equal(t, members, addresses("member"))
	}
}
