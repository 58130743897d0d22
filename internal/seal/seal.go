// Package seal encrypts secrets that must be readable again, such as the signing secrets of
// webhooks, with AES-256-GCM at rest.
//
// A sealed value contains the id of its key. Several keys can therefore be readable while one
// replaces another.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"

	"github.com/go-faster/errors"
)

// ErrUnreadable is returned by Open for a value with an unknown key, a value that was sealed for
// another owner, and a damaged value.
var ErrUnreadable = errors.New("sealed value can't be opened: unknown key, wrong owner or damaged")

// Box seals with one key and opens with several.
type Box struct {
	sealing string
	keys    map[string]cipher.AEAD
	// masters are the raw keys, from which the keys of SealApart are derived.
	masters map[string][]byte
}

// New makes an empty box. Add adds keys to it.
func New() *Box { return &Box{keys: map[string]cipher.AEAD{}, masters: map[string][]byte{}} }

// Add adds a key of 32 bytes to the box. The first key seals. The id has 1 to 255 bytes and must be
// unique, because a second key with the same id would make the values of the first one unreadable.
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
	// The nonce is random and precedes the value. Even with 2^32 values for one key, far more than
	// there are webhooks, a repetition is less likely than 2^-32. Values in larger numbers use
	// SealApart.
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

// KeyID returns the id of the key that seals.
func (b *Box) KeyID() string { return b.sealing }

// Readable reports whether the box has a key, so that Open can use it.
func (b *Box) Readable(id string) bool { return b.keys[id] != nil }

// SealApart is Seal with a key that is derived for the owner, so that the number of owners is
// unlimited. OpenApart opens the value.
func (b *Box) SealApart(owner, secret string) []byte {
	return b.apart(b.sealing, owner).Seal(owner, secret)
}

// OpenApart decrypts a value of SealApart. It returns ErrUnreadable if it can't.
func (b *Box) OpenApart(owner string, sealed []byte) (string, error) {
	id, _, ok := split(sealed)
	if !ok || b.keys[id] == nil {
		return "", ErrUnreadable
	}
	return b.apart(id, owner).Open(owner, sealed)
}

// apart returns a box with a key that is derived from a key of b for one owner.
func (b *Box) apart(id, owner string) *Box {
	own := New()
	key, err := hkdf.Key(sha256.New, b.masters[id], nil, "earshot "+owner, 32)
	if err == nil {
		err = own.Add(id, key)
	}
	if err != nil {
		panic(err) // a key of 32 bytes can always be derived and added
	}
	return own
}

// split returns the id of the key that sealed a value, and the rest of the value.
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

// Seal encrypts a secret for an owner. Open needs the same owner, so a sealed value that was copied
// to another row can't be opened there.
func (b *Box) Seal(owner, secret string) []byte {
	sealed := append([]byte{byte(len(b.sealing))}, b.sealing...)
	return b.keys[b.sealing].Seal(sealed, nil, []byte(secret), []byte(owner))
}

// Open decrypts a value of Seal. It returns ErrUnreadable if it can't.
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
