package seeding

import (
	"context"
	"encoding/binary"
	"strconv"
	"strings"
	"time"
)

// The distributions resemble those of a real product: few plans, most contacts without revenue, and
// Zipf distributions for votes and words. Every value depends only on the number of its row, so two
// seeds are equal.

// The kinds of ids.
const (
	forOrganization = iota
	forMember
	forBoard
	forTag
	forPost
	forContact
	forVote
	forEntry
	forComment
	forPostTag
)

var epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// at returns the creation time of row n: n minutes into 2020.
func at(n int64) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }

// id returns an id that increases with time, like the ids of the service.
func id(n int64, kind int) [16]byte {
	var made [16]byte
	first := mixed(uint64(n)<<4 | uint64(kind))
	binary.BigEndian.PutUint64(made[:], uint64(at(n).UnixMilli())<<16|first>>48)
	binary.BigEndian.PutUint64(made[8:], mixed(first))
	made[6], made[8] = 0x70|made[6]&0x0f, 0x80|made[8]&0x3f // a UUIDv7
	return made
}

// mixed returns a pseudo-random number that differs for each n. It is the last step of SplitMix64,
// because seeding needs millions of fast numbers.
func mixed(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// seededFor is the number of a row that is the only one of its kind.
const seededFor = 0

// organizationID is the same in every seed.
var organizationID = id(seededFor, forOrganization)

// people writes the contacts. It runs in parallel to feedback, because contacts are as much work as
// all other rows.
func (f *filling) people(ctx context.Context) error {
	return f.without(ctx, aboutPeople, f.contacts, f.contactDocuments)
}

func (f *filling) feedback(ctx context.Context) error {
	return f.without(ctx, aboutFeedback, f.organization, f.posts, f.postDocuments, f.tagged, f.votes, f.comments, f.changelog)
}

func (f *filling) organization(ctx context.Context) error {
	of, now := organizationID, time.Now()
	one := func(table string, columns []string, row ...any) error {
		return f.copy(ctx, table, columns, 0, 0, func(int64) []any { return row })
	}
	if err := one("organizations", []string{"id", "created_at", "updated_at", "name", "plan", "billing_state"},
		of, now, now, Organization, "business", "active"); err != nil {
		return err
	}
	if err := one("users", []string{"id", "organization_id", "created_at", "updated_at", "email", "name", "role"},
		id(seededFor, forMember), of, now, now, "bench@example.com", "Bench", "owner"); err != nil {
		return err
	}
	err := f.copy(ctx, "boards", []string{"id", "organization_id", "created_at", "updated_at", "name", "slug"}, 0, 99, func(n int64) []any {
		number := strconv.FormatInt(n, 10)
		return []any{id(n, forBoard), of, now, now, "Board " + number, "board-" + number}
	})
	if err != nil {
		return err
	}
	return f.copy(ctx, "tags", []string{"id", "organization_id", "created_at", "updated_at", "name", "name_key", "color", "board_id"}, 0, 29,
		func(n int64) []any {
			number := strconv.FormatInt(n, 10)
			return []any{id(n, forTag), of, now, now, "Tag " + number, "tag " + number, "#6b7280", id(0, forBoard)}
		})
}

var words = strings.Fields(`export dashboard mobile filter report chart login search email billing invoice team
	calendar keyboard shortcut theme dark import csv webhook slack alert permission role audit
	language timezone currency print share comment vote roadmap status archive merge tag board
	sync offline cache latency upload avatar profile password token session limit quota`)

func word(n int64) string { return words[n%int64(len(words))] }

func title(n int64) string {
	first := word(n * n)
	made := strings.ToUpper(first[:1]) + first[1:] + " " + word(n/50) + " " + word(n*13/7)
	if n%5003 == 0 {
		made += " xylophone" // a rare word
	}
	return made
}

func body(n int64) string {
	var text strings.Builder
	for i := int64(1); i <= 30; i++ {
		if i > 1 {
			text.WriteByte(' ')
		}
		text.WriteString(word(n*i*i + i))
	}
	if n%4999 == 0 {
		text.WriteString(" xylophone")
	}
	text.WriteString(" please") // in all texts, and in no title
	return text.String()
}

// posts writes the posts with their counters, which follow from the numbers of the votes and
// comments.
func (f *filling) posts(ctx context.Context) error {
	votes, comments := make([]int64, f.size.Posts+1), make([]int64, f.size.Posts+1)
	for n := int64(1); n <= f.allVotes(); n++ {
		votes[f.votedFor(n)]++
	}
	for n := firstComment; n < firstComment+int64(f.size.Posts); n++ {
		comments[f.commentedOn(n)]++
	}
	columns := []string{
		"id", "organization_id", "created_at", "updated_at", "title", "slug", "status", "body_text", "last_activity_at", "board_id",
		"contact_id", "author_user_id", "vote_count", "comment_count",
	}
	return f.copy(ctx, "posts", columns, 1, f.size.Posts, func(n int64) []any {
		status := "shipped"
		switch {
		case n%50_000 == 0:
			status = "declined"
		case n%100 < 80:
			status = "open"
		case n%100 < 95:
			status = "planned"
		}
		var from any
		switch {
		case n%6 == 0: // one contact has a sixth of all posts
			from = id(1, forContact)
		case n%3 == 0:
			from = id(1+n*31%int64(f.size.Contacts), forContact)
		}
		return []any{
			id(n, forPost), organizationID, at(n), at(n), title(n), "post-" + strconv.FormatInt(n, 10), status, body(n),
			at(n + n*104_729%500_000), id(0, forBoard), from, id(seededFor, forMember), votes[n], comments[n],
		}
	})
}

func (f *filling) tagged(ctx context.Context) error {
	return f.copy(ctx, "post_tags", []string{"id", "organization_id", "post_id", "tag_id"}, 1, f.size.Posts, func(n int64) []any {
		if n%3 == 0 {
			return nil
		}
		return []any{id(n, forPostTag), organizationID, id(n, forPost), id(n*7%29, forTag)}
	})
}

// allVotes returns the number of all votes: those on the first post, and a fifth more.
func (f *filling) allVotes() int64 { return int64(f.size.Votes) * 6 / 5 }

// votedFor returns the number of the post that vote n is on. Every sixth vote is on a post other
// than the first. Of those posts, the first ones have the most votes.
func (f *filling) votedFor(n int64) int64 {
	if n%6 > 0 || f.size.Posts == 1 {
		return 1
	}
	share := float64(n*7919%1_000_003) / 1_000_003
	return 2 + int64(float64(f.size.Posts-1)*share*share*share)
}

func (f *filling) votes(ctx context.Context) error {
	return f.copy(ctx, "votes", []string{"id", "organization_id", "created_at", "email_hash", "post_id"}, 1, int(f.allVotes()), func(n int64) []any {
		return []any{id(n, forVote), organizationID, at(n), hashOf(n), id(f.votedFor(n), forPost)}
	})
}

func hashOf(n int64) []byte {
	hash := make([]byte, 0, 32)
	for range 4 {
		n = int64(mixed(uint64(n)))
		hash = binary.BigEndian.AppendUint64(hash, uint64(n))
	}
	return hash
}

const firstComment = int64(4)

// commentedOn returns the number of the post that comment n is on. A third of all threads is on the
// first post.
func (f *filling) commentedOn(n int64) int64 {
	if n/4%3 == 0 {
		return 1
	}
	return 1 + n/4%int64(f.size.Posts)
}

// comments writes threads of four comments.
func (f *filling) comments(ctx context.Context) error {
	columns := []string{
		"id", "organization_id", "created_at", "updated_at", "parent_id", "body_text", "post_id", "author_user_id", "email_hash",
	}
	author := hashOf(0)
	return f.copy(ctx, "comments", columns, int(firstComment), int(firstComment)+f.size.Posts-1, func(n int64) []any {
		var parent any
		if n%4 > 0 {
			parent = id(n-n%4, forComment)
		}
		return []any{
			id(n, forComment), organizationID, at(n), at(n), parent, "Me too, and in landscape.",
			id(f.commentedOn(n), forPost), id(seededFor, forMember), author,
		}
	})
}

func (f *filling) changelog(ctx context.Context) error {
	columns := []string{"id", "organization_id", "created_at", "updated_at", "title", "slug", "board_id"}
	now := time.Now()
	return f.copy(ctx, "changelog_entries", columns, 1, max(1, f.size.Posts*3/20), func(n int64) []any {
		number := strconv.FormatInt(n, 10)
		return []any{
			id(n, forEntry), organizationID, now, now, "Release " + number, "release-" + number, id(0, forBoard),
		}
	})
}
