package inflight_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/inflight"
	"earshot/internal/publicid"
)

const ofOne, ofAll = 3, 20

func TestSoManyOfAnOrganizationHaveRoomAndOthersDoNotMind(t *testing.T) {
	t.Parallel()
	one, w := publicid.NewOrganization(), inflight.NewRoom[publicid.Organization](ofOne, ofAll)
	var leave []func()
	for range ofOne {
		l, ok := w.Enter(one)
		require.True(t, ok)
		leave = append(leave, l)
	}
	_, ok := w.Enter(one)
	require.False(t, ok)
	_, ok = w.Enter(publicid.NewOrganization())
	require.True(t, ok)
	leave[0]()
	_, ok = w.Enter(one)
	require.True(t, ok)
}

func TestSoManyOfAllHaveRoom(t *testing.T) {
	t.Parallel()
	w := inflight.NewRoom[publicid.Organization](ofOne, ofAll)
	for range ofAll {
		_, ok := w.Enter(publicid.NewOrganization())
		require.True(t, ok)
	}
	_, ok := w.Enter(publicid.NewOrganization())
	require.False(t, ok)
}
