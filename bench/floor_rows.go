package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"earshot/internal/batch"
	"earshot/internal/publicid"
)

// floorRows writes and reads the same rows as the use cases, with bare pgx on the real schema and
// its triggers. It measures the least that Postgres needs. Its organization is separate, so the
// ledgers of the runs don't see its rows.
type floorRows struct {
	pool                  *pgxpool.Pool
	tenant                tenant
	organization          uuid.UUID
	board, webhook, owner uuid.UUID
	payload               []byte
	posts, delivered      batch.Batcher[uuid.UUID, struct{}]
}

func (s *stack) newFloorRows(ctx context.Context) (*floorRows, error) {
	t, err := s.makeTenant(ctx)
	if err != nil {
		return nil, err
	}
	hook, _, err := t.register(ctx, s.receiver.url+floorPath, "post.created")
	if err != nil {
		return nil, err
	}
	f := &floorRows{
		pool: s.pool, tenant: t, organization: t.organization.UUID(), board: publicid.Read[publicid.Board](t.board).UUID(),
		webhook: publicid.Read[publicid.Webhook](hook.ID).UUID(), owner: t.owner.UUID(),
	}
	// The payload is as long as the event of a real post.
	f.payload, err = json.Marshal(map[string]any{
		"event": "post.created", "organizationId": t.organization, "boardId": t.board, "post": map[string]any{
			"id": publicid.NewPost(), "title": "Floor " + uuid.NewString(), "slug": "floor-" + uuid.NewString(), "status": "open", "createdAt": time.Now(),
		},
	})
	if err != nil {
		return nil, errors.Wrap(err, "encode an event")
	}
	f.posts = batch.New(floorGroupSize, time.Minute, f.writeGroup(groupedPosts))
	f.delivered = batch.New(floorGroupSize, time.Minute, f.writeGroup(groupedPosts+groupedDeliveries))
	return f, nil
}

// The statements of a change, as simple as possible. The floor's deliveries are due tomorrow, so
// the worker leaves them alone.
const (
	lockBoard = "SELECT id FROM boards WHERE organization_id = $1 AND id = $2 FOR KEY SHARE"
	onePost   = `INSERT INTO posts (id, organization_id, created_at, updated_at, title, slug, last_activity_at, board_id, author_user_id)
VALUES ($1, $2, now(), now(), $3, $4, now(), $5, $6) ON CONFLICT DO NOTHING`
	findWebhooks = `SELECT id, url FROM webhooks WHERE organization_id = $1 AND enabled AND events @> '["post.created"]' FOR KEY SHARE`
	oneEvent     = "INSERT INTO events (id, organization_id, created_at, type, payload) VALUES ($1, $2, now(), 'post.created', $3)"
	oneDelivery  = `INSERT INTO deliveries (id, organization_id, created_at, event_type, next_attempt_at, webhook_id, event_id)
VALUES ($1, $2, now(), 'post.created', now() + interval '1 day', $3, $4)`

	// $1 organization, $2 board, $3 author, $4 posts, $5 events, $6 deliveries, $7 payload.
	groupedPosts = `
WITH given AS (SELECT * FROM unnest($4::uuid[], $5::uuid[], $6::uuid[]) AS g(post, event, delivery)),
board AS (SELECT id FROM boards WHERE organization_id = $1 AND id = $2 FOR KEY SHARE),
posted AS (INSERT INTO posts (id, organization_id, created_at, updated_at, title, slug, last_activity_at, board_id, author_user_id)
  SELECT post, $1, now(), now(), 'Floor ' || post, 'floor-' || post, now(), board.id, $3 FROM given, board
  ON CONFLICT DO NOTHING RETURNING id),
counted AS (INSERT INTO event_sequences AS s (organization_id, last) SELECT $1, count(*) FROM given
  ON CONFLICT (organization_id) DO UPDATE SET last = s.last + excluded.last RETURNING last - (SELECT count(*) FROM given) AS before),
happened AS (INSERT INTO events (id, organization_id, created_at, type, payload, sequence)
  SELECT event, $1, now(), 'post.created', $7::bytea, before + row_number() OVER () FROM given, counted RETURNING id)`
	groupedDeliveries = `,
hooks AS (SELECT id FROM webhooks WHERE organization_id = $1 AND enabled AND events @> '["post.created"]' FOR KEY SHARE),
sent AS (INSERT INTO deliveries (id, organization_id, created_at, event_type, next_attempt_at, webhook_id, event_id)
  SELECT delivery, $1, now(), 'post.created', now() + interval '1 day', hooks.id, event FROM given, hooks RETURNING id)`
)

type statement struct {
	sql  string
	args []any
}

// change returns the statements for a post, its event and its delivery.
func (f *floorRows) change(withDelivery bool) []statement {
	post, event := publicid.NewPost().UUID(), publicid.NewEvent().UUID()
	all := []statement{
		{lockBoard, []any{f.organization, f.board}},
		{onePost, []any{post, f.organization, "Floor " + post.String(), "floor-" + post.String(), f.board, f.owner}},
		{findWebhooks, []any{f.organization}},
		{oneEvent, []any{event, f.organization, f.payload}},
	}
	if withDelivery {
		all = append(all, statement{oneDelivery, []any{publicid.NewDelivery().UUID(), f.organization, f.webhook, event}})
	}
	return all
}

// oneByOne waits for the result of each statement before it sends the next one.
func (f *floorRows) oneByOne(ctx context.Context, all []statement) error {
	return pgx.BeginFunc(ctx, f.pool, func(tx pgx.Tx) error {
		for _, s := range all {
			if _, err := tx.Exec(ctx, s.sql, s.args...); err != nil {
				return errors.Wrap(err, "write the floor's rows")
			}
		}
		return nil
	})
}

// pipelined sends all statements in one batch, which is an implicit transaction.
func (f *floorRows) pipelined(ctx context.Context, all []statement) error {
	var b pgx.Batch
	for _, s := range all {
		b.Queue(s.sql, s.args...)
	}
	if err := f.pool.SendBatch(ctx, &b).Close(); err != nil {
		return errors.Wrap(err, "write the floor's rows")
	}
	return nil
}

// writeGroup returns a function that writes the posts of several requests with one statement.
func (f *floorRows) writeGroup(sql string) func(ctx context.Context, posts []uuid.UUID) ([]struct{}, error) {
	return func(ctx context.Context, posts []uuid.UUID) ([]struct{}, error) {
		events, deliveries := make([]uuid.UUID, len(posts)), make([]uuid.UUID, len(posts))
		for i := range posts {
			events[i], deliveries[i] = publicid.NewEvent().UUID(), publicid.NewDelivery().UUID()
		}
		full := sql + " SELECT count(*) FROM posted"
		if _, err := f.pool.Exec(ctx, full, f.organization, f.board, f.owner, posts, events, deliveries, f.payload); err != nil {
			return nil, errors.Wrap(err, "write the floor's rows")
		}
		return make([]struct{}, len(posts)), nil
	}
}

func inGroups(b batch.Batcher[uuid.UUID, struct{}]) operation {
	return func(ctx context.Context, _ int) error {
		_, err := b.Do(ctx, publicid.NewPost().UUID())
		return err
	}
}

// counting creates a post. The operation then inserts rows for that post and updates the post's
// counter.
func (f *floorRows) counting(insert, counter string, grouped bool) func(ctx context.Context) (operation, error) {
	add := "UPDATE posts SET " + counter + " = " + counter + " + $2, last_activity_at = now() WHERE id = $1"
	return func(ctx context.Context) (operation, error) {
		made, err := f.tenant.post(ctx, f.tenant.board)
		if err != nil {
			return nil, err
		}
		post := publicid.Read[publicid.Post](made).UUID()
		if !grouped {
			return func(ctx context.Context, _ int) error {
				one := []uuid.UUID{uuid.Must(uuid.NewV7())}
				return f.oneByOne(ctx, []statement{{insert, []any{one, f.organization, post}}, {add, []any{post, 1}}})
			}, nil
		}
		return inGroups(batch.New(floorGroupSize, time.Minute, func(ctx context.Context, ids []uuid.UUID) ([]struct{}, error) {
			err := f.pipelined(ctx, []statement{{insert, []any{ids, f.organization, post}}, {add, []any{post, len(ids)}}})
			return make([]struct{}, len(ids)), err
		})), nil
	}
}

const (
	oneVote = `INSERT INTO votes (id, organization_id, created_at, email_hash, post_id)
SELECT id, $2, now(), sha256(id::text::bytea), $3 FROM unnest($1::uuid[]) AS g(id) ON CONFLICT DO NOTHING`
	oneComment = `INSERT INTO comments (id, organization_id, created_at, updated_at, email_hash, body_text, post_id)
SELECT id, $2, now(), now(), sha256(id::text::bytea), 'Me too, and in landscape.', $3 FROM unnest($1::uuid[]) AS g(id)`
	oneContact = `WITH happened AS (INSERT INTO events (id, organization_id, created_at, type, payload) VALUES ($3, $2, now(), 'contact.created', $4))
INSERT INTO contacts (id, organization_id, created_at, updated_at, external_user_id, email, name, metadata, source, consent_basis,
  first_seen_at, last_seen_at)
VALUES ($1::uuid, $2, now(), now(), $1::text, $1::text || '@example.com', 'Bench', '{}', 'identify', 'sdk_identify', now(), now())`
)

func (f *floorRows) contact(ctx context.Context, _ int) error {
	if _, err := f.pool.Exec(ctx, oneContact, uuid.Must(uuid.NewV7()), f.organization, publicid.NewEvent().UUID(), f.payload); err != nil {
		return errors.Wrap(err, "write the floor's rows")
	}
	return nil
}

// The rows of a page, newest first. $1 is the board. If every post has the word, the fastest search
// scans the posts in order.
var (
	pageRows = fmt.Sprintf("SELECT p.* FROM posts p WHERE p.board_id >= $1 AND p.board_id <= $1 AND p.deleted_at IS NULL "+
		"ORDER BY p.board_id DESC, p.id DESC LIMIT %d", listed)
	searchRows = fmt.Sprintf(`SELECT p.* FROM posts p JOIN post_documents d ON d.post_id = p.id
WHERE p.board_id = $1 AND p.deleted_at IS NULL AND d.words @@ to_tsquery('english', '%s') ORDER BY p.id DESC LIMIT %d`, wordOfTexts, listed)
	postRow = "SELECT * FROM posts WHERE id = $1 AND deleted_at IS NULL"
)

// read runs a statement and reads its rows. It returns an error unless there are n rows.
func (f *floorRows) read(ctx context.Context, n int, sql string, args ...any) error {
	rows, err := f.pool.Query(ctx, sql, args...)
	if err != nil {
		return errors.Wrap(err, "read the floor's rows")
	}
	found := 0
	for rows.Next() {
		found++
		_ = rows.RawValues()
	}
	if err := rows.Err(); err != nil {
		return errors.Wrap(err, "read the floor's rows")
	}
	if found != n {
		return errors.Errorf("the floor read %d rows, not %d", found, n)
	}
	return nil
}

// copyContacts makes the contacts of a load with the same columns as identify. They were last seen
// an hour ago.
func (s *stack) copyContacts(ctx context.Context, of publicid.Organization, n int, externalID func(i int) string) error {
	columns := []string{
		"id", "organization_id", "created_at", "updated_at", "external_user_id", "email", "name", "metadata", "source", "consent_basis",
		"first_seen_at", "last_seen_at",
	}
	organization, then := of.UUID(), time.Now().Add(-time.Hour)
	_, err := s.pool.CopyFrom(ctx, pgx.Identifier{"contacts"}, columns, pgx.CopyFromSlice(n, func(i int) ([]any, error) {
		id := externalID(i)
		return []any{
			publicid.NewContact().UUID(), organization, then, then, id, id + "@example.com", "Bench", "{}", "identify", "sdk_identify", then, then,
		}, nil
	}))
	if err != nil {
		return errors.Wrap(err, "make contacts")
	}
	// Autovacuum would update the statistics only minutes later. Until then the planner would
	// assume that the organization has no contacts.
	if _, err := s.pool.Exec(ctx, "ANALYZE contacts"); err != nil {
		return errors.Wrap(err, "have the database know the contacts")
	}
	return nil
}
