// Package interactions lets end-users vote, post and comment on public boards: once an e-mail
// has shown that the address is theirs, or at once where this browser has shown it before.
// README.md states the rules.
package interactions

import (
	"crypto/hkdf"
	"crypto/sha256"
	"log/slog"

	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/contacts"
	"earshot/internal/feedback"
	"earshot/internal/seal"
	"earshot/internal/store"
	"earshot/internal/subscribers"
)

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store       *store.Store
	changes     *change.Runner
	feedback    *feedback.Service
	subscribers *subscribers.Service
	secrets     *seal.Box
	log         *slog.Logger
	// disposable are the domains of addresses that nobody keeps.
	disposable config.Domains
	// hashKey keys the hashes of addresses; the tokens of links and the stamps of forms have keys
	// that are made of it, because it is the same in all processes and never changes.
	hashKey, linkKey, formKey []byte
}

// New makes the service from its collaborators. The key is the deployment's for the hashes of
// addresses. Addresses of the disposable domains are refused.
func New(
	s *store.Store, changes *change.Runner, f *feedback.Service, mailed *subscribers.Service, secrets *seal.Box, hashKey []byte,
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
		panic(err) // a key of 32 bytes can be made
	}
	return own
}

func (s *Service) emailHash(address string) []byte { return contacts.HashEmail(s.hashKey, address) }

// mailboxHash is what limits count a person by.
func (s *Service) mailboxHash(address string) []byte { return contacts.HashMailbox(s.hashKey, address) }
