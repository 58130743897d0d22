package webhooks

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
)

func TestSoManyOfAnOrganizationWaitForAnEventAndOthersDoNotMind(t *testing.T) {
	t.Parallel()
	one, w := publicid.NewOrganization(), waiters{of: map[publicid.Organization]int{}}
	var leave []func()
	for range mostWaitingOfOne {
		l, ok := w.enter(one)
		require.True(t, ok)
		leave = append(leave, l)
	}
	_, ok := w.enter(one)
	require.False(t, ok)
	_, ok = w.enter(publicid.NewOrganization())
	require.True(t, ok)
	leave[0]()
	_, ok = w.enter(one)
	require.True(t, ok)
}

func TestSoManyOfAllWaitForAnEvent(t *testing.T) {
	t.Parallel()
	w := waiters{of: map[publicid.Organization]int{}}
	for range mostWaiting {
		_, ok := w.enter(publicid.NewOrganization())
		require.True(t, ok)
	}
	_, ok := w.enter(publicid.NewOrganization())
	require.False(t, ok)
}
