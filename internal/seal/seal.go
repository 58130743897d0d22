// Package seal keeps secrets that must be read again, such as the signing
// secrets of webhooks, encrypted at rest with AES-256-GCM.
//
// A sealed value names the key it was sealed with, so that several keys can be
// readable while one is being replaced.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"

	"github.com/go-faster/errors"
)

// ErrUnreadable is returned by Open for a value that was sealed with a key that
// isn't known here, sealed for something else, or damaged.
var ErrUnreadable = errors.New("sealed value can't be opened: unknown key, wrong owner or damaged")

// Box seals with one key and opens with any of several.
type Box struct {
	sealing string
	keys    map[string]cipher.AEAD
	// masters are the keys themselves, of which those of SealApart are made.
	masters map[string][]byte
}

// New makes an empty box; Add gives it keys.
func New() *Box { return &Box{keys: map[string]cipher.AEAD{}, masters: map[string][]byte{}} }

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
	// than there are webhooks, a repetition is still unlikelier than 2^-32. What there
	// is more of is sealed by SealApart.
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return errors.Wrap(err, "make the cipher")
	}
	if b.sealing == "" {
		b.sealing = id
	}
	b.keys[id], b.masters[id] = aead, bytes.Clone(key)
	return nil
}

// KeyID is the id of the key that seals.
func (b *Box) KeyID() string { return b.sealing }

// Readable reports whether Open knows a key.
func (b *Box) Readable(id string) bool { return b.keys[id] != nil }

// SealApart is Seal with a key that is made for the owner alone, so that there may be any number
// of owners. OpenApart opens it.
func (b *Box) SealApart(owner, secret string) []byte {
	return b.apart(b.sealing, owner).Seal(owner, secret)
}

// OpenApart decrypts what SealApart made. It returns ErrUnreadable.
func (b *Box) OpenApart(owner string, sealed []byte) (string, error) {
	id, _, ok := split(sealed)
	if !ok || b.keys[id] == nil {
		return "", ErrUnreadable
	}
	return b.apart(id, owner).Open(owner, sealed)
}

// apart is a box with the key of an owner that is made of a key of this one.
func (b *Box) apart(id, owner string) *Box {
	own := New()
	key, err := hkdf.Key(sha256.New, b.masters[id], nil, "earshot "+owner, 32)
	if err == nil {
		err = own.Add(id, key)
	}
	if err != nil {
		panic(err) // a key of 32 bytes can be made, and is taken
	}
	return own
}

// split is the name of the key that a value was sealed with, and the rest.
func split(sealed []byte) (id string, rest []byte, ok bool) {
	if len(sealed) == 0 || len(sealed) < 1+int(sealed[0]) {
		return "", nil, false
	}
	return string(sealed[1 : 1+int(sealed[0])]), sealed[1+int(sealed[0]):], true
}

// Current reports whether a value was sealed with the key that seals.
func (b *Box) Current(sealed []byte) bool {
	id, _, ok := split(sealed)
	return ok && id == b.sealing
}

// Seal encrypts a secret for its owner, which Open must be told again: a sealed
// value that was copied to another row doesn't open there.
func (b *Box) Seal(owner, secret string) []byte {
	sealed := append([]byte{byte(len(b.sealing))}, b.sealing...)
	return b.keys[b.sealing].Seal(sealed, nil, []byte(secret), []byte(owner))
}

// Open decrypts what Seal made. It returns ErrUnreadable.
func (b *Box) Open(owner string, sealed []byte) (string, error) {
	id, rest, ok := split(sealed)
	if !ok || b.keys[id] == nil {
		return "", ErrUnreadable
	}
	secret, err := b.keys[id].Open(nil, nil, rest, []byte(owner))
	if err != nil {
		return "", ErrUnreadable
	}
	return string(secret), nil
}
