package feedback

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"math/big"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/apikey"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

const (
	keyPrefix   = "esk_"
	keyAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	// 40 characters of base62 are 238 bits: nobody guesses those.
	keyRandom = 40
	// What stays visible of a key, so that a person can tell keys apart.
	keyVisible = 12
)

// NewAPIKey is what to make a key of.
type NewAPIKey struct {
	User publicid.User
	Name string
	// Scope is read or read:write.
	Scope string
	// ExpiresAt is optional.
	ExpiresAt *time.Time
}

// CreateAPIKey makes a key for a member of the organization in the context and
// returns it in clear, for the only time.
func (s *Service) CreateAPIKey(ctx context.Context, in NewAPIKey) (string, *db.APIKey, error) {
	var bad problem.Fields
	text(&bad, "name", in.Name, 1, 100)
	scope := apikey.Scope(in.Scope)
	if apikey.ScopeValidator(scope) != nil {
		bad.Add("scope", "enum", "must be read or read:write")
	}
	if in.ExpiresAt != nil && !in.ExpiresAt.After(now()) {
		bad.Add("expiresAt", "future", "must lie in the future")
	}
	if err := bad.Err(); err != nil {
		return "", nil, err
	}
	secret := keyPrefix + randomText(keyRandom)
	hash := sha256.Sum256([]byte(secret))
	key, err := s.store.Client().APIKey.Create().
		SetUserID(in.User).SetName(in.Name).SetScope(scope).SetNillableExpiresAt(in.ExpiresAt).
		SetHash(hash[:]).SetPrefix(secret[:keyVisible]).
		Save(ctx)
	if err != nil {
		return "", nil, errors.Wrap(err, "insert the API key")
	}
	return secret, key, nil
}

// APIKeys lists the keys of the organization in the context, oldest first.
func (s *Service) APIKeys(ctx context.Context) ([]*db.APIKey, error) {
	keys, err := s.store.Client().APIKey.Query().Order(db.Asc(apikey.FieldID)).WithUser().All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "list API keys")
	}
	return keys, nil
}

// RevokeAPIKey makes a key useless within a second, everywhere. Revoking it
// again changes nothing.
func (s *Service) RevokeAPIKey(ctx context.Context, id publicid.APIKey) (*db.APIKey, error) {
	err := s.store.Client().APIKey.Update().
		Where(apikey.ID(id), apikey.RevokedAtIsNil()).SetRevokedAt(now()).Exec(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "revoke the API key")
	}
	key, err := s.store.Client().APIKey.Query().Where(apikey.ID(id)).WithUser().Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("API key")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the API key")
	}
	return key, nil
}

func randomText(n int) string {
	var out strings.Builder
	size := big.NewInt(int64(len(keyAlphabet)))
	for range n {
		// rand.Int doesn't fail: crypto/rand ends the program without randomness.
		i, _ := rand.Int(rand.Reader, size)
		out.WriteByte(keyAlphabet[i.Int64()])
	}
	return out.String()
}
