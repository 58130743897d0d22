package access

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
	"earshot/ent/db/user"
	"earshot/internal/change"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

const (
	keyPrefix   = "esk_"
	keyAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	// 40 characters of base62 have 238 bits, too many to guess.
	keyRandom = 40
	// keyVisible is the length of the visible prefix, by which people tell keys apart.
	keyVisible = 12
	maxKeyName = 100
)

// NewAPIKey is the input for a new key.
type NewAPIKey struct {
	// User is the member that the key acts as.
	User publicid.User
	Name string
	// Scope is read or read:write.
	Scope string
	// ExpiresAt is optional.
	ExpiresAt *time.Time
}

func (in *NewAPIKey) check() error {
	in.Name = strings.TrimSpace(in.Name)
	var bad problem.Fields
	bad.Shown("name", in.Name, 1, maxKeyName)
	if apikey.ScopeValidator(apikey.Scope(in.Scope)) != nil {
		bad.Add("scope", "enum", "must be read or read:write")
	}
	bad.Moment("expiresAt", in.ExpiresAt)
	if in.ExpiresAt != nil && !in.ExpiresAt.After(postgres.Now()) {
		bad.Add("expiresAt", "future", "must lie in the future")
	}
	return bad.Err()
}

// IssuedKey is a new key with its secret in clear text, which is not available later.
type IssuedKey struct {
	Key    *db.APIKey
	Secret string
}

// CreateAPIKey creates a key for a member of the organization in the context. It returns the secret
// in clear text, which is not available later. It is for the operator.
func (s *Service) CreateAPIKey(ctx context.Context, in NewAPIKey) (secret string, key *db.APIKey, err error) {
	if err := in.check(); err != nil {
		return "", nil, err
	}
	err = s.asOperator(ctx, func(ctx context.Context, c *change.Change) error {
		if _, err := mayMakeKeyFor(ctx, c, in.User); err != nil {
			return err
		}
		made, err := insertKey(ctx, c.APIKey, in, origin{})
		if err != nil {
			return err
		}
		c.Audit("createApiKey", made.Key.ID)
		secret, key = made.Secret, made.Key
		return nil
	})
	return secret, key, err
}

// mayMakeKeyFor checks that a user is a member and that the caller may manage the member's keys. It
// returns the caller.
func mayMakeKeyFor(ctx context.Context, c *change.Change, id publicid.User) (by manager, err error) {
	if by, err = lockMembers(ctx, c); err != nil {
		return by, err
	}
	of, err := onlyMember(ctx, c.User.Query().Where(user.ID(id)))
	if problem.Is(err, problem.NotFound) {
		return by, problem.MissingIn("memberId", "member")
	}
	if err != nil {
		return by, err
	}
	return by, by.mayManageKeysOf(of)
}

// origin says where a key comes from. It is empty for a key that the operator makes.
type origin struct {
	// key is the key of the request.
	key *publicid.APIKey
	// members may know the new key, besides its own member.
	members []publicid.User
	// rateLimit is passed on. Otherwise a key could create others to exceed its own budget.
	rateLimit *int
}

// insertKey generates a key and inserts it.
func insertKey(ctx context.Context, client *db.APIKeyClient, in NewAPIKey, from origin) (*IssuedKey, error) {
	secret := keyPrefix + randomText(keyRandom)
	hash := sha256.Sum256([]byte(secret))
	create := client.Create()
	if len(from.members) > 0 {
		create.SetCreatedBy(from.members)
	}
	key, err := create.
		SetUserID(in.User).SetName(in.Name).SetScope(apikey.Scope(in.Scope)).
		SetNillableExpiresAt(postgres.AtPrecision(in.ExpiresAt)).SetNillableRateLimit(from.rateLimit).SetNillableCreatedByKeyID(from.key).
		SetHash(hash[:]).SetPrefix(secret[:keyVisible]).
		Save(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "insert the API key")
	}
	return &IssuedKey{Key: key, Secret: secret}, nil
}

// MintAPIKey is CreateAPIKey for the caller in the context. If member is nil, the key acts as the
// caller.
func (s *Service) MintAPIKey(
	ctx context.Context, member *publicid.User, in NewAPIKey, q change.Request[*IssuedKey],
) (*IssuedKey, error) {
	in.User = change.CallerOf(ctx).User.ID
	if member != nil {
		in.User = *member
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*IssuedKey, error) {
		in := in // a repetition starts from the given expiry
		by, err := mayMakeKeyFor(ctx, c, in.User)
		if err != nil {
			return nil, err
		}
		if in.ExpiresAt, err = notBeyond(by.key, in.ExpiresAt); err != nil {
			return nil, err
		}
		if err := mustHaveRoomForKey(ctx, c, in.User); err != nil {
			return nil, err
		}
		from := origin{key: &by.key.ID, members: creatorsOf(c, in.User), rateLimit: by.key.RateLimit}
		made, err := insertKey(ctx, c.APIKey, in, from)
		if err != nil {
			return nil, err
		}
		c.Audit("createApiKey", made.Key.ID)
		return made, nil
	})
}

// notBeyond returns the end of a key that another key creates. A new key must not outlive its creator,
// because a leaked key with an expiry could otherwise be used for ever.
func notBeyond(creator *db.APIKey, wanted *time.Time) (*time.Time, error) {
	ends := KeyEnds(creator)
	if ends == nil || (wanted != nil && !wanted.After(*ends)) {
		return wanted, nil
	}
	if wanted == nil {
		return ends, nil
	}
	var bad problem.Fields
	bad.Add("expiresAt", "maximum", "must not be later than the end of the key that creates it, %s", ends.UTC().Format(time.RFC3339Nano))
	return nil, bad.Err()
}

// KeyEnds returns the time at which a key stops being valid, because it expires or was rotated. Nil
// means never.
func KeyEnds(k *db.APIKey) *time.Time {
	if k.ExpiresAt == nil || (k.SupersededAt != nil && k.SupersededAt.Before(*k.ExpiresAt)) {
		return k.SupersededAt
	}
	return k.ExpiresAt
}

func ended(k *db.APIKey, at time.Time) bool {
	until := KeyEnds(k)
	return k.RevokedAt != nil || (until != nil && !until.After(at))
}

// APIKeys lists the keys of the organization in the context, oldest first, including those that
// have ended.
func (s *Service) APIKeys(ctx context.Context, q page.Query) (page.Page[*db.APIKey], error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	list := page.ListOf("apiKeys")
	last := page.After[publicid.APIKey](&bad, list, q)
	if err := bad.Err(); err != nil {
		return page.Page[*db.APIKey]{}, err
	}
	query := s.store.Client().APIKey.Query().Order(db.Asc(apikey.FieldID)).WithUser().Limit(limit + 1)
	if last != nil {
		query.Where(apikey.IDGT(*last))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return page.Page[*db.APIKey]{}, errors.Wrap(err, "list API keys")
	}
	return page.Cut(list, rows, limit, page.ByID(func(k *db.APIKey) string { return k.ID.String() })), nil
}

// WithdrawAPIKey is RevokeAPIKey for the caller in the context. It ignores the billing state, so
// that a leaked key can always be revoked.
func (s *Service) WithdrawAPIKey(
	ctx context.Context, id publicid.APIKey, keepCreated bool, q change.Request[*db.APIKey],
) error {
	_, err := change.RunUnpaid(ctx, s.changes, q, func(c *change.Change) (*db.APIKey, error) {
		by, err := lockMembers(ctx, c)
		if err != nil {
			return nil, err
		}
		key, err := onlyKey(ctx, c.APIKey.Query().Where(apikey.ID(id)).WithUser())
		if err != nil {
			return nil, err
		}
		if err := by.mayManageKeysOf(key.Edges.User); err != nil {
			return nil, err
		}
		return revokeKey(ctx, c, id, keepCreated)
	})
	return err
}

// RevokeAPIKey revokes a key for the operator, and the keys that were created with it unless
// keepCreated is true. All processes refuse the keys within a second. Revoking a key again revokes
// only keys that it created.
func (s *Service) RevokeAPIKey(ctx context.Context, id publicid.APIKey, keepCreated bool) (revoked *db.APIKey, err error) {
	found, err := onlyKey(ctx, s.store.Client().APIKey.Query().Where(apikey.ID(id)))
	if err != nil {
		return nil, err
	}
	err = s.changes.RunForService(ctx, found.OrganizationID, func(ctx context.Context, c *change.Change) (err error) {
		// No other request may create a key with this one meanwhile.
		if err := c.LockOrganization(ctx); err != nil {
			return err
		}
		revoked, err = revokeKey(ctx, c, id, keepCreated)
		return err
	})
	return revoked, err
}

func revokeKey(ctx context.Context, c *change.Change, id publicid.APIKey, keepCreated bool) (*db.APIKey, error) {
	ids, at := []publicid.APIKey{id}, postgres.Now()
	if !keepCreated {
		created, err := createdWith(ctx, c, id)
		if err != nil {
			return nil, err
		}
		ids = append(ids, created...)
	}
	for _, id := range ids {
		n, err := c.APIKey.Update().Where(apikey.ID(id), apikey.RevokedAtIsNil()).SetRevokedAt(at).Save(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "revoke the API key")
		}
		if n > 0 {
			c.Audit("revokeApiKey", id)
		}
	}
	return onlyKey(ctx, c.APIKey.Query().Where(apikey.ID(id)).WithUser())
}

func onlyKey(ctx context.Context, query *db.APIKeyQuery) (*db.APIKey, error) {
	found, err := query.Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("API key")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the API key")
	}
	return found, nil
}

func randomText(n int) string {
	var out strings.Builder
	size := big.NewInt(int64(len(keyAlphabet)))
	for range n {
		// rand.Int never fails: crypto/rand ends the program without randomness.
		i, _ := rand.Int(rand.Reader, size)
		out.WriteByte(keyAlphabet[i.Int64()])
	}
	return out.String()
}
