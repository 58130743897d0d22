package apptest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/publicid"
)

// Agos returns times that lie the given numbers of seconds in the past.
func Agos(seconds ...int) []time.Time {
	at := make([]time.Time, len(seconds))
	for i, s := range seconds {
		at[i] = time.Now().UTC().Truncate(time.Microsecond).Add(time.Duration(-s) * time.Second)
	}
	return at
}

// Recover starts a recovery and returns its id.
func (n *Tenant) Recover(t *testing.T, hook string, body Object) publicid.Recovery {
	t.Helper()
	return n.RecoveryID(t, n.ID(t, hook+"/recover", body))
}

// RecoveryID parses the id of a recovery.
func (n *Tenant) RecoveryID(t *testing.T, text any) publicid.Recovery {
	t.Helper()
	id, err := publicid.Parse[publicid.Recovery](text.(string))
	require.NoError(t, err)
	return id
}

// Minute returns the last minute as a time window.
func Minute() Object { return Object{"since": Agos(60)[0]} }

// Hook registers a webhook for the events, or for all of them, and returns its path.
func (n *Tenant) Hook(t *testing.T, events ...event.Type) string {
	t.Helper()
	return "/v1/webhooks/" + n.Listen(t, events...)
}
