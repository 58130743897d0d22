package webhook

import (
	"crypto/rand"
	"strings"
)

// base62 has only letters and digits, so that a secret survives shells, .env
// files and a double click.
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// secretLength is the number of random characters. 32 of 62 kinds hold 190
// bits, more than the 128 that no search reaches.
const secretLength = 32

// NewSecret returns a new signing secret: SecretPrefix and 32 characters, each
// of the 62 letters and digits equally likely. It uses crypto/rand, which ends
// the program instead of returning weak bytes.
func NewSecret() string {
	var secret strings.Builder
	secret.WriteString(SecretPrefix)
	// 248 is the largest multiple of 62 that fits into a byte. Bytes from 248
	// to 255 are discarded: folding them in would favour the first characters.
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

// usable reports whether a secret has more than blanks after the prefix.
// Without this check, an empty configuration would make a key that everybody
// knows.
func usable(secret string) bool {
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(secret), SecretPrefix)) != ""
}
