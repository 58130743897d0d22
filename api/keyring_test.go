package api

import (
	"context"
	"crypto/sha256"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/change"
)

// Whoever joins a look-up late must not remember its result for longer than the
// one who began it: the key may have been revoked since.
func TestAKeyIsRememberedFromTheStartOfItsLookUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const slow = 800 * time.Millisecond
		asked := 0
		k := &keyring{
			known: map[[sha256.Size]byte]remembered{},
			authenticate: func(context.Context, string) (*change.Caller, error) {
				asked++
				time.Sleep(slow)
				return &change.Caller{Key: &db.APIKey{}}, nil
			},
		}
		find := func() {
			_, err := k.find(t.Context(), "esk_1")
			require.NoError(t, err)
		}
		go find()
		time.Sleep(slow - time.Millisecond)
		find() // joins
		require.Equal(t, 1, asked)
		time.Sleep(rememberKey - slow - time.Millisecond)
		find()
		require.Equal(t, 1, asked, "remembered")
		time.Sleep(time.Millisecond)
		find()
		require.Equal(t, 2, asked, "looked up again")
	})
}
