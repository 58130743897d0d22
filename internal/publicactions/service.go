// Package publicactions lets end-users vote, post and comment on public boards. They verify their
// address by e-mail first, unless their browser remembers an earlier verification. README.md states
// the rules.
package publicactions

import (
	"crypto/hkdf"
	"crypto/sha256"
	"log/slog"

	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/contacts"
	"earshot/internal/feedback"
	"earshot/internal/postgres"
	"earshot/internal/seal"
	"earshot/internal/subscribers"
)

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store       *postgres.DB
	changes     *change.Runner
	feedback    *feedback.Service
	subscribers *subscribers.Service
	secrets     *seal.Box
	log         *slog.Logger
	// disposable are the domains of disposable addresses.
	disposable config.Domains
	// hashKey keys the hashes of addresses. The keys for the tokens of links and the stamps of forms
	// are derived from it, because it is the same in all processes and never changes.
	hashKey, linkKey, formKey []byte
}

// New makes the service from its collaborators. The hashKey is the deployment's key for hashes of
// addresses. Forms with an address of a disposable domain are refused.
func New(
	s *postgres.DB, changes *change.Runner, f *feedback.Service, mailed *subscribers.Service, secrets *seal.Box, hashKey []byte,
	disposable config.Domains, log *slog.Logger,
) *Service {
	return &Service{
		store: s, changes: changes, feedback: f, subscribers: mailed, secrets: secrets, log: log, disposable: disposable,
		hashKey: hashKey, linkKey: derived(hashKey, "earshot link"), formKey: derived(hashKey, "earshot form"),
	}
}

func derived(key []byte, purpose string) []byte {
	own, err := hkdf.Key(sha256.New, key, nil, purpose, sha256.Size)
	if err != nil {
		panic(err) // HKDF cannot fail for 32 bytes
	}
	return own
}

func (s *Service) emailHash(address string) []byte { return contacts.HashEmail(s.hashKey, address) }

// mailboxHash is the hash by which limits count a person.
func (s *Service) mailboxHash(address string) []byte { return contacts.HashMailbox(s.hashKey, address) }
