package webhook

import (
	"crypto/rand"
	"strings"
)

// base62 is letters and digits only, so that a secret survives shells, .env
// files and a double click.
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// secretLength is the number of random characters: 32 of 62 kinds hold 190
// bits, more than the 128 that no search reaches.
const secretLength = 32

// NewSecret returns a fresh signing secret: SecretPrefix and 32 characters,
// each of the 62 letters and digits equally likely. It draws on crypto/rand,
// which ends the program rather than return weak bytes.
func NewSecret() string {
	var secret strings.Builder
	secret.WriteString(SecretPrefix)
	// 248 is the largest multiple of 62 that a byte reaches. A byte from 248
	// to 255 is thrown away: folding it in would favour the first characters.
	const fair = 256 - 256%len(base62)
	var pool [secretLength]byte
	for secret.Len() < len(SecretPrefix)+secretLength {
		_, _ = rand.Read(pool[:]) // documented never to return an error
		for _, b := range pool {
			if int(b) < fair && secret.Len() < len(SecretPrefix)+secretLength {
				secret.WriteByte(base62[int(b)%len(base62)])
			}
		}
	}
	return secret.String()
}

// usable reports whether a secret is one: something other than blanks stands
// after the prefix. A configuration that was never filled in would otherwise
// make a key that everybody knows.
func usable(secret string) bool {
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(secret), SecretPrefix)) != ""
}
