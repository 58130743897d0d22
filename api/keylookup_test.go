package api

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"

	"earshot/internal/access"
)

// asked counts the statements of a look-up for which only one hash is there.
type asked struct {
	there      [sha256.Size]byte
	statements int
	takes      time.Duration
}

func (a *asked) ask(_ context.Context, hashes [][]byte) (there [][]byte, err error) {
	a.statements++ // one at a time, or the race detector says so
	time.Sleep(a.takes)
	for _, h := range hashes {
		if [sha256.Size]byte(h) == a.there {
			there = append(there, h)
		}
	}
	return there, nil
}

func TestAThousandGuessesAtOnceAreTwoStatementsAndLetAValidKeyPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		valid := sha256.Sum256([]byte("valid"))
		a := &asked{there: valid, takes: time.Second}
		l := newKeyLookup(a.ask)
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() {
				known, err := l.Do(t.Context(), sha256.Sum256(fmt.Append(nil, i)))
				require.NoError(t, err)
				require.False(t, known)
			})
		}
		synctest.Wait()
		known, err := l.Do(t.Context(), valid)
		require.NoError(t, err)
		require.True(t, known)
		all.Wait()
		require.Equal(t, 2, a.statements)
	})
}

func TestAKeyIsLookedForWhenTheDatabaseIsBackAndWhoeverLeavesIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	there := sha256.Sum256([]byte("there"))
	fails := true
	l := newKeyLookup(func(_ context.Context, all [][]byte) ([][]byte, error) {
		if fails {
			fails = false
			return nil, away
		}
		return all, nil
	})
	_, err := l.Do(t.Context(), there)
	require.ErrorIs(t, err, away)
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, _ = l.Do(gone, there)
	known, err := l.Do(t.Context(), there)
	require.NoError(t, err)
	require.True(t, known)
}

func TestAKeyThatIsNotThereIsNotLookedUp(t *testing.T) {
	t.Parallel()
	k := &keyring{known: map[[sha256.Size]byte]remembered{}, there: newKeyLookup(new(asked).ask)}
	_, err := k.find(t.Context(), "esk_guess") // there is nothing that it could be looked up with
	require.Equal(t, access.BadKey(), err)
}

func TestWhatIsRememberedOfGuessersIsBounded(t *testing.T) {
	t.Parallel()
	g := newRefusedKeys()
	first := g.bucket(networkOf(0))
	for i := range maxNetworks - 1 {
		g.bucket(networkOf(i + 1))
	}
	require.Same(t, first, g.bucket(networkOf(0)), "still there, and the latest now")
	second := g.bucket(networkOf(1))
	for i := range maxNetworks - 1 {
		g.bucket(networkOf(maxNetworks + i))
	}
	require.Same(t, second, g.bucket(networkOf(1)))
	require.NotSame(t, first, g.bucket(networkOf(0)))
	require.Len(t, g.by, maxNetworks)
	require.Equal(t, maxNetworks, g.recent.Len())
}

func networkOf(i int) netip.Prefix {
	return clientNetwork(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, byte(i >> 16), byte(i >> 8), byte(i)}))
}
