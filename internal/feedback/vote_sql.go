package feedback

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// VoteLook is a search for a person's votes on a post, by the ids and by the hashes of the address.
type VoteLook struct {
	Post    publicid.Post
	Member  *publicid.User
	Contact *publicid.Contact
	Hashes  [][]byte
}

const (
	voteLookColumns = "id, organization_id, post_id, user_id, contact_id, email_hash, created_at"
	// maxTwins is more than the members of an organization who share an address.
	maxTwins = 64
)

// Each branch has an index of its own. Two members may share an address, so a member's hash finds no
// votes of other members. A contact's or a visitor's hash does, by the index of all hashes of the
// organization: IS NOT DISTINCT FROM keeps Postgres from reading all votes on the post instead.
var lookForVotesSQL = fmt.Sprintf(`
SELECT w.place, v.* FROM unnest((SELECT $2::int[]), $3::uuid[], $4::uuid[], $5::uuid[], $6::bytea[], $7::bool[])
  w(place, post_id, user_id, contact_id, email_hash, twins), LATERAL (
  (SELECT %[1]s FROM votes WHERE organization_id = $1 AND post_id = w.post_id AND user_id = w.user_id LIMIT 1)
  UNION ALL
  (SELECT %[1]s FROM votes WHERE organization_id = $1 AND post_id = w.post_id AND contact_id = w.contact_id LIMIT 1)
  UNION ALL
  (SELECT %[1]s FROM votes WHERE organization_id = $1 AND post_id = w.post_id AND email_hash = w.email_hash AND user_id IS NULL LIMIT 1)
  UNION ALL
  (SELECT %[1]s FROM votes WHERE w.twins AND organization_id = $1 AND email_hash = w.email_hash
    AND post_id IS NOT DISTINCT FROM w.post_id AND user_id IS NOT NULL LIMIT %[2]d)
) v`, voteLookColumns, maxTwins)

// LookForVotes returns the votes that each search finds, in the order of their ids.
func LookForVotes(ctx context.Context, tx *db.Tx, looks []VoteLook) ([][]*db.Vote, error) {
	var places []int32
	var posts, members, contacts postgres.UuidArray
	var hashes [][]byte
	var twins []bool
	add := func(i int, l VoteLook, hash []byte) {
		places, posts, hashes, twins = append(places, int32(i)), append(posts, postgres.UUID(l.Post)), append(hashes, hash), append(twins, l.Member == nil)
		members, contacts = append(members, postgres.MaybeUUID(l.Member)), append(contacts, postgres.MaybeUUID(l.Contact))
	}
	for i, l := range looks {
		if len(l.Hashes) == 0 {
			add(i, l, nil)
		}
		for _, hash := range l.Hashes {
			add(i, l, hash)
		}
	}
	found := make([][]*db.Vote, len(looks))
	var place int
	var v db.Vote
	err := postgres.QueryTx(ctx, tx, postgres.EachRow([]any{&place, &v.ID, &v.OrganizationID, &v.PostID, &v.UserID, &v.ContactID, &v.EmailHash, &v.CreatedAt}, func() {
		row := v
		found[place] = append(found[place], &row)
	}), lookForVotesSQL, places, posts, members, contacts, hashes, twins)
	if err != nil {
		return nil, errors.Wrap(err, "look for votes")
	}
	for i, all := range found {
		slices.SortFunc(all, func(a, b *db.Vote) int { return compareIDs(a.ID, b.ID) })
		found[i] = slices.CompactFunc(all, func(a, b *db.Vote) bool { return a.ID == b.ID })
	}
	return found, nil
}

func compareIDs(a, b publicid.Vote) int {
	left, right := a.UUID(), b.UUID()
	return bytes.Compare(left[:], right[:])
}
