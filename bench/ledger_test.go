package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
	"earshot/webhook"
	"earshot/worker"
)

func TestMain(m *testing.M) { apptest.Main(m, apptest.WithWorker(worker.Module)) }

// testBundle is a small run of every scenario that has a ledger.
type testBundle struct {
	*stack
	board  string
	hook   publicid.Webhook
	secret string
	post   publicid.Post
	since  time.Time
	posts  acknowledged
	votes  acknowledged
	talk   acknowledged
	told   identified
}

// setup gives the run a new organization and a new receiver.
func setup(t *testing.T, s *stack) *testBundle {
	t.Helper()
	own := *s
	var err error
	own.tenant, err = s.makeTenant(t.Context())
	require.NoError(t, err)
	own.receiver = newReceiver()
	t.Cleanup(own.receiver.close)
	return &testBundle{stack: &own}
}

// run makes posts with deliveries, adds votes and comments to one post, and identifies contacts.
func (b *testBundle) run(t *testing.T) {
	t.Helper()
	const n = 5
	ctx := t.Context()
	b.since, b.posts, b.votes, b.talk, b.told = now(), acknowledged{}, acknowledged{}, acknowledged{}, identified{told: map[string]string{}}
	var err error
	b.board, err = b.newBoard(ctx)
	require.NoError(t, err)
	made, remove, err := b.register(ctx, b.receiver.url, "post.created")
	require.NoError(t, err)
	t.Cleanup(remove)
	b.hook, b.secret = publicid.Read[publicid.Webhook](made.ID), made.Secret
	arrived := b.receiver.expect(n, made.Secret)
	voters, err := b.makeVoters(ctx, b.organization, n)
	require.NoError(t, err)
	for i := range n {
		b.receiver.begin(i, time.Now())
		id, err := b.createPost(ctx, b.board, b.receiver.title(i))
		require.NoError(t, err)
		b.posts.add(id)
	}
	b.post = publicid.Read[publicid.Post](b.posts.ids[0])
	for i := range n {
		id, err := b.vote(ctx, b.post.String(), voters[i])
		require.NoError(t, err)
		b.votes.add(id)
		id, err = b.comment(ctx, b.post.String())
		require.NoError(t, err)
		b.talk.add(id)
		require.NoError(t, b.identify(ctx, contactID("test", i), "", true, &b.told))
	}
	<-arrived
}

func (b *testBundle) check(ctx context.Context) error {
	for _, check := range []func() error{
		func() error { return b.postsAre(ctx, b.board, &b.posts) },
		func() error { return b.deliveriesAre(ctx, b.organization, b.hook, b.since, &b.posts) },
		func() error { return b.votesAre(ctx, b.post, &b.votes) },
		func() error { return b.commentsAre(ctx, b.post, &b.talk) },
		func() error { return b.contactsAre(ctx, b.organization, b.since, b.told.told, "") },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// send sends the receiver a webhook about the run's first post.
func (b *testBundle) send(t *testing.T, delivery, secret string) {
	t.Helper()
	body := []byte(`{"post":{"title":"` + b.receiver.title(0) + `"}}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.receiver.url, bytes.NewReader(body))
	require.NoError(t, err)
	r.Header.Set(webhook.HeaderEvent, "post.created")
	r.Header.Set(webhook.HeaderDelivery, delivery)
	r.Header.Set(webhook.HeaderSignature, webhook.Sign(secret, time.Now(), body))
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	_ = answer.Body.Close()
}

// faults are possible faults of a service, each with the error that the ledger reports.
var faults = map[string]struct {
	sql   string
	do    func(t *testing.T, b *testBundle)
	wrong string
}{
	"a post that is lost": {
		sql:   "UPDATE posts SET deleted_at = now() WHERE id = (SELECT id FROM posts WHERE board_id = $1 ORDER BY id DESC LIMIT 1)",
		wrong: "of 5 acknowledged posts 1 aren't there, and 0 are",
	},
	"a post that was written twice": {
		do: func(t *testing.T, b *testBundle) {
			_, err := b.tenant.post(t.Context(), b.board)
			require.NoError(t, err)
		},
		wrong: "of 5 acknowledged posts 0 aren't there, and 1 are",
	},
	"a post that was acknowledged twice": {
		do:    func(_ *testing.T, b *testBundle) { b.posts.add(b.posts.ids[0]) },
		wrong: "acknowledged twice",
	},
	"a delivery that failed": {
		sql: `UPDATE deliveries SET status = 'failed' WHERE id = (SELECT d.id FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
			JOIN boards b ON b.organization_id = w.organization_id WHERE b.id = $1 ORDER BY d.id DESC LIMIT 1)`,
		wrong: "hasn't succeeded by one attempt",
	},
	"a delivery that isn't there": {
		sql: `DELETE FROM deliveries WHERE id = (SELECT d.id FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
			JOIN boards b ON b.organization_id = w.organization_id WHERE b.id = $1 ORDER BY d.id DESC LIMIT 1)`,
		wrong: "of 5 acknowledged event's posts 1 aren't there",
	},
	"an event too many": {
		sql: `INSERT INTO events (id, organization_id, created_at, type, payload)
			SELECT gen_random_uuid(), organization_id, now(), 'post.created', '{}' FROM boards WHERE id = $1`,
		wrong: "5 posts have 6 events",
	},
	"a webhook that came twice": {
		do: func(t *testing.T, b *testBundle) {
			for id := range b.receiver.deliveries {
				b.send(t, id, b.secret)
				return
			}
		},
		wrong: "came 2 times",
	},
	"a webhook of an unknown delivery": {
		do:    func(t *testing.T, b *testBundle) { b.send(t, publicid.NewDelivery().String(), b.secret) },
		wrong: "is one of this run: false",
	},
	"a signature that isn't right": {
		do:    func(t *testing.T, b *testBundle) { b.send(t, publicid.NewDelivery().String(), webhook.NewSecret()) },
		wrong: "1 requests whose signature isn't right",
	},
	"a vote that isn't counted": {
		sql:   "UPDATE posts SET vote_count = vote_count - 1 WHERE board_id = $1 AND vote_count > 0",
		wrong: "vote_count isn't the number",
	},
	"a vote that is lost": {
		sql:   "DELETE FROM votes WHERE id = (SELECT v.id FROM votes v JOIN posts p ON p.id = v.post_id WHERE p.board_id = $1 LIMIT 1)",
		wrong: "of 5 acknowledged votes 1 aren't there",
	},
	"a comment that is counted twice": {
		sql:   "UPDATE posts SET comment_count = comment_count + 1 WHERE board_id = $1",
		wrong: "comment_count isn't the number",
	},
	"a comment that is lost": {
		sql:   "DELETE FROM comments WHERE id = (SELECT c.id FROM comments c JOIN posts p ON p.id = c.post_id WHERE p.board_id = $1 LIMIT 1)",
		wrong: "of 5 acknowledged comments 1 aren't there",
	},
	"a contact that is lost": {
		sql: `DELETE FROM contacts WHERE id = (SELECT c.id FROM contacts c JOIN boards b ON b.organization_id = c.organization_id
			WHERE b.id = $1 LIMIT 1)`,
		wrong: "of 5 acknowledged contacts 1 aren't there",
	},
}

func TestARunThatIsWrongFails(t *testing.T) {
	tier.Slow(t, "runs the bench several times")
	t.Parallel()
	app := apptest.Start(t, apptest.Options{Worker: true})
	s, err := open(t.Context(), addresses{app.URL, app.Config.DatabaseURL, os.Getenv("TEMPORAL_ADDRESS")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.close()) })
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			b := setup(t, s)
			b.run(t)
			require.NoError(t, b.check(t.Context()))
			if fault.do != nil {
				fault.do(t, b)
			} else {
				done, err := b.pool.Exec(t.Context(), fault.sql, publicid.Read[publicid.Board](b.board))
				require.NoError(t, err)
				require.Positive(t, done.RowsAffected())
			}
			require.ErrorContains(t, b.check(t.Context()), fault.wrong)
		})
	}
}
