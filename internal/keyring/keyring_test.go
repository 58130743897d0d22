package keyring_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/keyring"
)

// A request that joins a look-up late must not cache its result for longer than the request that
// started it. The key may have been revoked since the start.
func TestAKeyIsRememberedFromTheStartOfItsLookUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const slow = 800 * time.Millisecond
		asked := 0
		k := keyring.New(func(context.Context, string) (*change.Caller, error) {
			asked++
			time.Sleep(slow)
			return &change.Caller{Key: &db.APIKey{}}, nil
		})
		find := func() {
			_, err := k.Find(t.Context(), "esk_1")
			require.NoError(t, err)
		}
		go find()
		time.Sleep(slow - time.Millisecond)
		find() // joins the look-up
		require.Equal(t, 1, asked)
		time.Sleep(keyring.Remembered - slow - time.Millisecond)
		find()
		require.Equal(t, 1, asked, "remembered")
		time.Sleep(time.Millisecond)
		find()
		require.Equal(t, 2, asked, "looked up again")
	})
}
