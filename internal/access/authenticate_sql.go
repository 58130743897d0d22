package access

import (
	"context"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/ent/db"
	"earshot/ent/db/apikey"
	"earshot/ent/db/organization"
	"earshot/ent/db/user"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// The columns are listed by name, because a newer schema may have more of them. The arrays are
// selected for the reason given at seeSQL.
var (
	keysSQL          = oneEach(apikey.Columns, "api_keys", "WHERE hash = w.hash")
	keyUsersSQL      = oneEach(user.Columns, "users", "WHERE id = (SELECT user_id FROM api_keys WHERE hash = w.hash)")
	organizationsSQL = oneEach(organization.Columns, "organizations", "WHERE id = (SELECT organization_id FROM api_keys WHERE hash = w.hash)")
)

func oneEach(columns []string, table, of string) string {
	return "SELECT f.* FROM unnest((SELECT $1::bytea[])) w(hash), LATERAL (SELECT " +
		strings.Join(columns, ", ") + " FROM " + table + " " + of + " LIMIT 1) f"
}

// keysWithOwners loads the API keys with these hashes and their members, and the organizations by
// id. It covers all organizations and takes one round trip for a whole batch.
func keysWithOwners(ctx context.Context, s *postgres.DB, hashes [][]byte) ([]*db.APIKey, map[publicid.Organization]*db.Organization, error) {
	b := &pgx.Batch{}
	var keys []*db.APIKey
	var users []*db.User
	var organizations []*db.Organization
	collect(b, &keys, pgx.RowToAddrOfStructByNameLax[db.APIKey], keysSQL, hashes)
	collect(b, &users, pgx.RowToAddrOfStructByNameLax[db.User], keyUsersSQL, hashes)
	collect(b, &organizations, pgx.RowToAddrOfStructByNameLax[db.Organization], organizationsSQL, hashes)
	if err := s.Across("an API key names its organization").SendBatch(ctx, b); err != nil {
		return nil, nil, errors.Wrap(err, "load API keys")
	}
	member := make(map[publicid.User]*db.User, len(users))
	for _, u := range users {
		member[u.ID] = u
	}
	for _, k := range keys {
		k.Edges.User = member[k.UserID]
	}
	byID := make(map[publicid.Organization]*db.Organization, len(organizations))
	for _, o := range organizations {
		byID[o.ID] = o
	}
	return keys, byID, nil
}

// collect queues a query whose rows go into a slice once the batch is sent.
func collect[T any](onto *pgx.Batch, into *[]T, scan pgx.RowToFunc[T], query string, args ...any) {
	onto.Queue(query, args...).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, scan)
		return err
	})
}

const noteKeyUsesSQL = `
UPDATE api_keys SET last_used_at = $2
WHERE id IN (SELECT id FROM api_keys WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)`

// noteKeyUses records when API keys of any organization were last used. It skips rows that another
// transaction has locked, because the next use will be recorded.
func noteKeyUses(ctx context.Context, s *postgres.DB, ids []publicid.APIKey, at time.Time) error {
	if _, err := s.Across("API keys name their organizations").Exec(ctx, noteKeyUsesSQL, postgres.UUIDs(ids), at); err != nil {
		return errors.Wrap(err, "note the use of API keys")
	}
	return nil
}
