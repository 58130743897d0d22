// Package feedback manages boards and their posts, votes, comments, tags and changelog. README.md
// states the rules.
package feedback

import (
	"log/slog"
	"time"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/slug"
)

// Settings are the options of a deployment.
type Settings struct {
	// CommentEditWindow is the time after its creation in which a comment can be edited. 0 means no
	// limit.
	CommentEditWindow time.Duration
	// EmailHashKey is the key of the hash of an author's address (contacts.HashEmail).
	EmailHashKey []byte
}

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store    *postgres.DB
	changes  *change.Runner
	contacts *contacts.Service
	settings Settings
	log      *slog.Logger

	// These batchers run the most frequent operations for several callers together.
	posts    change.Batch[wantedPost, *Post]
	votes    change.Batch[newVote, *CastVote]
	comments change.Batch[wantedComment, *db.Comment]
}

// maxSharedBodyBytes is the largest body that is written in a shared transaction. Most bodies are far smaller,
// and a batch of bodies of this size fits into memory.
const maxSharedBodyBytes = 16 << 10

// New makes the service from its collaborators.
func New(s *postgres.DB, changes *change.Runner, people *contacts.Service, settings Settings, log *slog.Logger) *Service {
	all := &Service{
		store: s, changes: changes, contacts: people, settings: settings, log: log,
	}
	all.posts = change.NewBatch(changes, change.Write[wantedPost, *Post]{Apply: all.createPosts, Alone: wantedPost.comesAlone, SkipsHeld: true})
	all.votes = change.NewBatch(changes, change.Write[newVote, *CastVote]{
		Apply: all.castVotes, Alone: func(v newVote) bool { return v.who.Named() }, SkipsHeld: true,
	})
	all.comments = change.NewBatch(changes, change.Write[wantedComment, *db.Comment]{
		Apply: all.createComments, Alone: wantedComment.comesAlone, SkipsHeld: true,
	})
	return all
}

// Spelled returns the hashes of a visitor's address.
func (s *Service) Spelled(address string) contacts.Spelled {
	return contacts.Spelled{EmailHash: s.emailHash(address), Mailbox: contacts.HashMailbox(s.settings.EmailHashKey, address)}
}

// emailHash is contacts.HashEmail with the deployment's key. Votes and comments are matched with
// contacts by it.
func (s *Service) emailHash(address string) []byte {
	return contacts.HashEmail(s.settings.EmailHashKey, address)
}

// withSlug inserts under the requested slug, or else under a free slug derived from base.
func withSlug(wanted *string, base string, high int, taken, insert func(string) (bool, error)) error {
	if wanted == nil {
		return slug.Free(base, high, taken, insert)
	}
	ok, err := insert(*wanted)
	if err == nil && !ok {
		return slugTaken()
	}
	return err
}

func slugTaken() error {
	return problem.New(problem.Conflict, "The slug is already taken.").With("field", "slug")
}
