// Package seal keeps secrets that must be read again, such as the signing
// secrets of webhooks, encrypted at rest with AES-256-GCM.
//
// A sealed value names the key it was sealed with, so that several keys can be
// readable while one is being replaced.
package seal

import (
	"crypto/aes"
	"crypto/cipher"

	"github.com/go-faster/errors"
)

// ErrUnreadable is returned by Open for a value that was sealed with a key that
// isn't known here, sealed for something else, or damaged.
var ErrUnreadable = errors.New("sealed value can't be opened: unknown key, wrong owner or damaged")

// Box seals with one key and opens with any of several.
type Box struct {
	sealing string
	keys    map[string]cipher.AEAD
}

// New makes an empty box; Add gives it keys.
func New() *Box { return &Box{keys: map[string]cipher.AEAD{}} }

// Add gives the box a key of 32 bytes; the first one seals. The id has 1 to 255
// bytes and may not be taken: what the first key of that name sealed would be
// lost.
func (b *Box) Add(id string, key []byte) error {
	if id == "" || len(id) > 255 || len(key) != 32 {
		return errors.New("a sealing key wants an id and 32 bytes")
	}
	if _, taken := b.keys[id]; taken {
		return errors.Errorf("there are two sealing keys of the name %q", id)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return errors.Wrap(err, "make the cipher")
	}
	// The nonce is random and written in front: at 2^32 values a key, far more
	// than there are webhooks, a repetition is still unlikelier than 2^-32.
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return errors.Wrap(err, "make the cipher")
	}
	if b.sealing == "" {
		b.sealing = id
	}
	b.keys[id] = aead
	return nil
}

// KeyID is the id of the key that seals.
func (b *Box) KeyID() string { return b.sealing }

// Readable reports whether Open knows a key.
func (b *Box) Readable(id string) bool { return b.keys[id] != nil }

// Seal encrypts a secret for its owner, which Open must be told again: a sealed
// value that was copied to another row doesn't open there.
func (b *Box) Seal(owner, secret string) []byte {
	sealed := append([]byte{byte(len(b.sealing))}, b.sealing...)
	return b.keys[b.sealing].Seal(sealed, nil, []byte(secret), []byte(owner))
}

// Open decrypts what Seal made. It returns ErrUnreadable.
func (b *Box) Open(owner string, sealed []byte) (string, error) {
	if len(sealed) == 0 || len(sealed) < 1+int(sealed[0]) {
		return "", ErrUnreadable
	}
	id, rest := sealed[1:1+int(sealed[0])], sealed[1+int(sealed[0]):]
	aead, ok := b.keys[string(id)]
	if !ok {
		return "", ErrUnreadable
	}
	secret, err := aead.Open(nil, nil, rest, []byte(owner))
	if err != nil {
		return "", ErrUnreadable
	}
	return string(secret), nil
}
