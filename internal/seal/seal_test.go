package seal_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/seal"
)

const (
	owner  = "whk_01kghp07asfkf9nsgqpjfrpzam"
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

func key(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

// named is a key with its id.
type named struct {
	id  string
	key []byte
}

func box(t *testing.T, keys ...named) *seal.Box {
	t.Helper()
	b := seal.New()
	for _, k := range keys {
		require.NoError(t, b.Add(k.id, k.key))
	}
	return b
}

func TestASealedSecretOpensForItsOwner(t *testing.T) {
	t.Parallel()
	b := box(t, named{"k1", key(1)})
	for _, s := range []string{secret, "", strings.Repeat("x", 1<<16), "\x00\xff"} {
		opened, err := b.Open(owner, b.Seal(owner, s))
		require.NoError(t, err)
		require.Equal(t, s, opened)
	}
}

func TestASealedSecretDoesNotOpenForAnotherOwner(t *testing.T) {
	t.Parallel()
	b := box(t, named{"k1", key(1)})
	sealed := b.Seal(owner, secret)
	for _, other := range []string{"", "whk_01kghp07asfkf9nsgqpjfrpzan", owner + " "} {
		_, err := b.Open(other, sealed)
		require.ErrorIs(t, err, seal.ErrUnreadable)
	}
}

func TestASecretSealedWithAnUnknownKeyDoesNotOpen(t *testing.T) {
	t.Parallel()
	sealed := box(t, named{"k1", key(1)}).Seal(owner, secret)
	_, err := box(t, named{"k2", key(1)}).Open(owner, sealed)
	require.ErrorIs(t, err, seal.ErrUnreadable)
}

func TestASecretDoesNotOpenWithAnotherKeyOfTheSameName(t *testing.T) {
	t.Parallel()
	sealed := box(t, named{"k1", key(1)}).Seal(owner, secret)
	_, err := box(t, named{"k1", key(2)}).Open(owner, sealed)
	require.ErrorIs(t, err, seal.ErrUnreadable)
}

func TestASealedSecretWithAnyBitChangedDoesNotOpen(t *testing.T) {
	t.Parallel()
	b := box(t, named{"k1", key(1)}, named{"k2", key(2)})
	sealed := b.Seal(owner, secret)
	for i := range sealed {
		for bit := range 8 {
			changed := bytes.Clone(sealed)
			changed[i] ^= 1 << bit
			_, err := b.Open(owner, changed)
			require.ErrorIs(t, err, seal.ErrUnreadable, "byte %d, bit %d", i, bit)
		}
	}
}

func TestASealedSecretOfAnotherLengthDoesNotOpen(t *testing.T) {
	t.Parallel()
	b := box(t, named{"k1", key(1)})
	sealed := b.Seal(owner, secret)
	for n := range sealed {
		_, err := b.Open(owner, sealed[:n])
		require.ErrorIs(t, err, seal.ErrUnreadable, "%d bytes", n)
	}
	_, err := b.Open(owner, append(bytes.Clone(sealed), 0))
	require.ErrorIs(t, err, seal.ErrUnreadable)
}

func TestAnOldKeyStillOpensAfterTheRotation(t *testing.T) {
	t.Parallel()
	old := box(t, named{"k1", key(1)})
	sealed := old.Seal(owner, secret)

	rotated := box(t, named{"k2", key(2)}, named{"k1", key(1)})
	opened, err := rotated.Open(owner, sealed)
	require.NoError(t, err)
	require.Equal(t, secret, opened)
}

func TestTheFirstKeySealsAfterTheRotation(t *testing.T) {
	t.Parallel()
	sealed := box(t, named{"k2", key(2)}, named{"k1", key(1)}).Seal(owner, secret)

	opened, err := box(t, named{"k2", key(2)}).Open(owner, sealed)
	require.NoError(t, err)
	require.Equal(t, secret, opened)
	_, err = box(t, named{"k1", key(1)}).Open(owner, sealed)
	require.ErrorIs(t, err, seal.ErrUnreadable)
}

func TestAValueSealedWithAnEarlierKeyIsRecognized(t *testing.T) {
	t.Parallel()
	old, rotated := box(t, named{"k1", key(1)}), box(t, named{"k2", key(2)}, named{"k1", key(1)})
	require.False(t, rotated.Current(old.Seal(owner, secret)))
	require.True(t, rotated.Current(rotated.Seal(owner, secret)))
	require.False(t, rotated.Current(nil))
}

func TestABoxNamesItsKeys(t *testing.T) {
	t.Parallel()
	b := box(t, named{"k2", key(2)}, named{"k1", key(1)})
	require.Equal(t, "k2", b.KeyID())
	require.True(t, b.Readable("k1"))
	require.False(t, b.Readable("k3"))
}

func TestTheSameSecretNeverLooksTheSameTwice(t *testing.T) {
	t.Parallel()
	b := box(t, named{"k1", key(1)})
	require.NotEqual(t, b.Seal(owner, secret), b.Seal(owner, secret))
}

func TestASealedSecretShowsNothingButTheNameOfItsKey(t *testing.T) {
	t.Parallel()
	sealed := box(t, named{"k1", key(1)}).Seal(owner, secret)
	require.Equal(t, []byte("\x02k1"), sealed[:3])
	require.NotContains(t, string(sealed), secret[:8])
}

func TestAKeyThatCanNotSealIsRefused(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]named{
		"without an id":   {"", key(1)},
		"too long an id":  {strings.Repeat("k", 256), key(1)},
		"31 bytes":        {"k1", key(1)[:31]},
		"33 bytes":        {"k1", append(key(1), 1)},
		"16 bytes":        {"k1", key(1)[:16]},
		"no bytes at all": {"k1", nil},
	} {
		require.Error(t, seal.New().Add(k.id, k.key), name)
	}
}

func TestTheLongestKeyNameWorks(t *testing.T) {
	t.Parallel()
	b := box(t, named{strings.Repeat("k", 255), key(1)})
	opened, err := b.Open(owner, b.Seal(owner, secret))
	require.NoError(t, err)
	require.Equal(t, secret, opened)
}

// A second key with the same id would silently replace the first one, and all values of the first
// key would be lost.
func TestTwoKeysOfOneNameAreRefused(t *testing.T) {
	t.Parallel()
	b := box(t, named{"k1", key(1)})
	sealed := b.Seal(owner, secret)
	require.ErrorContains(t, b.Add("k1", key(2)), "k1")

	opened, err := b.Open(owner, sealed)
	require.NoError(t, err)
	require.Equal(t, secret, opened)
}

func TestAValueThatIsSealedApartOpensForItsOwnerWithTheKeyOfThatTime(t *testing.T) {
	t.Parallel()
	old, both := box(t, named{"k1", key(1)}), box(t, named{"k2", key(2)}, named{"k1", key(1)})
	sealed := old.SealApart(owner, secret)
	got, err := both.OpenApart(owner, sealed)
	require.NoError(t, err)
	require.Equal(t, secret, got)
	for what, open := range map[string]func() (string, error){
		"another owner":          func() (string, error) { return both.OpenApart("another", sealed) },
		"the key of all":         func() (string, error) { return both.Open(owner, sealed) },
		"a key that isn't known": func() (string, error) { return box(t, named{"k2", key(2)}).OpenApart(owner, sealed) },
		"a damaged value":        func() (string, error) { return both.OpenApart(owner, sealed[:len(sealed)-1]) },
		"a value of nothing":     func() (string, error) { return both.OpenApart(owner, nil) },
		"one that isn't apart":   func() (string, error) { return both.OpenApart(owner, old.Seal(owner, secret)) },
	} {
		_, err := open()
		require.ErrorIs(t, err, seal.ErrUnreadable, what)
	}
}
