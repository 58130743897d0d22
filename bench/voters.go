package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"earshot/bench/seeding"
	"earshot/internal/publicid"
)

const (
	// More voters than one run needs. Each member votes on a post once.
	maxVoters = 60_000
	// The address by which the voters of a killed run are found.
	voterMail = "bench-voter-%d@example.com"
)

var keyColumns = []string{"id", "organization_id", "created_at", "name", "hash", "prefix", "scope", "rate_limit", "user_id"}

// makeVoters makes members with one key each, and returns the keys. The voter of a vote is the
// member of its key.
func (s *stack) makeVoters(ctx context.Context, of publicid.Organization, n int) ([]string, error) {
	keys, users, now := make([]string, n), make([]uuid.UUID, n), time.Now()
	organization := of.UUID()
	for i := range users {
		keys[i], users[i] = "esk_"+rand.Text()+rand.Text()[:14], publicid.NewUser().UUID()
	}
	// Without triggers: the check of each key's foreign key would search the new members with
	// outdated statistics and the wrong index, which takes minutes.
	err := seeding.Unchecked(ctx, s.at.database, func(tx pgx.Tx) error {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"users"}, []string{"id", "organization_id", "created_at", "updated_at", "email", "name", "role"},
			pgx.CopyFromSlice(n, func(i int) ([]any, error) {
				return []any{users[i], organization, now, now, fmt.Sprintf(voterMail, i), "Voter", "member"}, nil
			}))
		if err != nil {
			return errors.Wrap(err, "make the voters")
		}
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"api_keys"}, keyColumns, pgx.CopyFromSlice(n, func(i int) ([]any, error) {
			hash := sha256.Sum256([]byte(keys[i]))
			id := publicid.NewAPIKey().UUID()
			return []any{id, organization, now, "bench", hash[:], keys[i][:12], "read:write", unlimited, users[i]}, nil
		}))
		if err != nil {
			return errors.Wrap(err, "make the voters' keys")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return keys, s.analyzeVoters(ctx)
}

// analyzeVoters updates the statistics after the voters have changed. Autovacuum would do so only
// minutes later. Until then each request would find its key by reading all keys.
func (s *stack) analyzeVoters(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, "VACUUM (ANALYZE) users, api_keys"); err != nil {
		return errors.Wrap(err, "have the database know the voters")
	}
	return nil
}

// removeVoters removes the voters and their votes, and corrects the vote counts.
func (s *stack) removeVoters(ctx context.Context, of publicid.Organization) error {
	if err := s.retract(ctx, of); err != nil {
		return err
	}
	// No other rows refer to the voters. The check of the foreign keys would search two million
	// votes.
	return seeding.Unchecked(ctx, s.at.database, func(tx pgx.Tx) error {
		for _, sql := range []string{
			"DELETE FROM token_buckets WHERE bucket_id IN (SELECT k.id FROM api_keys k JOIN users u ON u.id = k.user_id WHERE " + isVoter + ")",
			"DELETE FROM api_keys k USING users u WHERE u.id = k.user_id AND " + isVoter,
			"DELETE FROM users u WHERE " + isVoter,
		} {
			if _, err := tx.Exec(ctx, sql, of.UUID()); err != nil {
				return errors.Wrap(err, "remove the voters")
			}
		}
		return nil
	})
}

const isVoter = "u.organization_id = $1 AND u.email LIKE 'bench-voter-%'"

// retract removes the votes of members and corrects the vote counts. Seeded votes have no member.
func (s *stack) retract(ctx context.Context, of publicid.Organization) error {
	_, err := s.pool.Exec(ctx, `
WITH gone AS (DELETE FROM votes WHERE organization_id = $1 AND user_id IS NOT NULL RETURNING post_id),
  counted AS (SELECT post_id, count(*) AS n FROM gone GROUP BY post_id)
UPDATE posts p SET vote_count = vote_count - n FROM counted c WHERE p.id = c.post_id`, of.UUID())
	if err != nil {
		return errors.Wrap(err, "retract the votes of the load")
	}
	return nil
}

// active marks the keys as recently used, as for voters that have read the post before. Otherwise
// the first vote of each voter would also update last_used_at.
func (s *stack) active(ctx context.Context, of publicid.Organization) error {
	_, err := s.pool.Exec(ctx, "UPDATE api_keys SET last_used_at = now() WHERE organization_id = $1", of.UUID())
	if err != nil {
		return errors.Wrap(err, "note the use of the voters' keys")
	}
	return s.analyzeVoters(ctx)
}
