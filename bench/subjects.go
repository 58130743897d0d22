package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// subject is one measurement.
type subject struct {
	name string
	// floors are the names of the subjects that this one is compared with, the nearest first.
	floors []string
	// byLatency marks a subject with a fixed rate, which is compared by its p50.
	byLatency bool
	// seeded marks a subject that reads the seeded organization.
	seeded bool
	run    func(ctx context.Context) (measured, error)
}

const (
	floorIdentify     = "floor: select and update by pgx"
	floorContact      = "floor: insert a contact by pgx"
	floorPost         = "floor: a post by pgx, one by one"
	floorPostPipe     = "floor: a post by pgx, pipelined"
	floorPostGroup    = "floor: posts by pgx, in groups"
	floorEvent        = "floor: post, event, delivery by pgx, one by one"
	floorEventPipe    = "floor: post, event, delivery by pgx, pipelined"
	floorEventGroup   = "floor: post, event, delivery by pgx, in groups"
	floorVote         = "floor: a vote by pgx, one by one"
	floorVoteGroup    = "floor: votes by pgx, in groups"
	floorComment      = "floor: a comment by pgx, one by one"
	floorCommentGroup = "floor: comments by pgx, in groups"
	floorList         = "floor: a list by pgx"
	floorSearch       = "floor: a search by pgx"
	floorGet          = "floor: a post's row by pgx"
	floorWorkflow     = "floor: a workflow each"
	floorGroup        = "floor: workflows of groups"

	identifyUnchanged = "identify a known contact, unchanged"
	identifyKnown     = "identify a known contact, with a new trait"
	identifyNew       = "identify a new contact"
	batchUnchanged    = "identify in batches of 100, known contacts, unchanged"
	batchNew          = "identify in batches of 100, new contacts"
	oneUnchanged      = "identify a known contact, unchanged, by one client"
	oneNew            = "identify a new contact, by one client"
	oneBatch          = "identify in batches of 100, known contacts, unchanged, by one client"
	oneBatchNew       = "identify in batches of 100, new contacts, by one client"
	identifyTool      = "identify by the tool identify_contact, unchanged"
	postNoWebhook     = "create a post, nobody subscribes"
	postKeyed         = "create a post with an idempotency key, nobody subscribes"
	postDelivered     = "create a post until its webhook arrived"
	voteFew           = "vote, each of another voter, on one post"
	voteMany          = "vote, each of another voter, on a post with all seeded votes"
	commentOne        = "comment, all on one post"
	listPosts         = "list 30 posts"
	searchTitles      = "search a frequent word"
	searchTexts       = "search a word of all texts and no title"
	getPost           = "get one post"
	publicPage        = "read a page of a public board"
	publicPages       = "read a page of a public board, each another one"
)

// The search words, as bench/seeding writes them.
const (
	wordOfTitles = "export"
	wordOfTexts  = "please"
)

// subjects returns the subjects with o.only in their names, each after its floors. A subject and
// its floors are thus measured within the same minutes.
func (s *stack) subjects(o options) []subject {
	all := slices.Concat(s.rest(o), s.arrivals(o), s.floors(o))
	var list []subject
	var add func(b subject)
	add = func(b subject) {
		if slices.ContainsFunc(list, func(other subject) bool { return other.name == b.name }) {
			return
		}
		for _, floor := range all {
			if slices.Contains(b.floors, floor.name) {
				add(floor)
			}
		}
		list = append(list, b)
	}
	for _, b := range all {
		if strings.Contains(b.name, o.only) {
			add(b)
		}
	}
	return list
}

// rest returns the requests without deliveries.
func (s *stack) rest(o options) []subject {
	return []subject{
		{name: postNoWebhook, floors: []string{floorPost, floorPostPipe, floorPostGroup}, run: func(ctx context.Context) (measured, error) {
			return s.createPosts(ctx, o, s.tenant)
		}},
		{name: postKeyed, floors: []string{postNoWebhook}, run: func(ctx context.Context) (measured, error) {
			t := s.tenant
			t.api = t.keyed
			return s.createPosts(ctx, o, t)
		}},
		{name: voteFew, floors: []string{floorVote, floorVoteGroup}, seeded: true, run: func(ctx context.Context) (measured, error) {
			return s.votesOnFreshPost(ctx, o)
		}},
		// Its floor is the same operation on a post without the seeded votes: earlier votes must
		// not make a vote more expensive.
		{name: voteMany, floors: []string{voteFew, floorVote, floorVoteGroup}, seeded: true, run: func(ctx context.Context) (measured, error) {
			return s.votes(ctx, o, s.seeded.posts[0])
		}},
		{name: commentOne, floors: []string{floorComment, floorCommentGroup}, run: func(ctx context.Context) (measured, error) { return s.comments(ctx, o) }},
		{name: identifyUnchanged, floors: []string{floorIdentify}, run: func(ctx context.Context) (measured, error) {
			return s.identifyUnchanged(ctx, o, func(ctx context.Context, id string, into *identified) error {
				return s.identify(ctx, id, "", false, into)
			})
		}},
		// The ratio shows the cost that the tools add.
		{name: identifyTool, floors: []string{identifyUnchanged}, run: func(ctx context.Context) (measured, error) {
			return s.identifyUnchanged(ctx, o, s.identifyByTool)
		}},
		{name: identifyKnown, floors: []string{floorIdentify}, run: func(ctx context.Context) (measured, error) { return s.identifyKnown(ctx, o) }},
		{name: identifyNew, floors: []string{floorContact}, run: func(ctx context.Context) (measured, error) { return s.identifyNew(ctx, o) }},
		// Batches count contacts, in comparison with single requests.
		{name: batchUnchanged, floors: []string{identifyUnchanged}, run: func(ctx context.Context) (measured, error) {
			return s.identifyBatches(ctx, o, o.connections/2, false)
		}},
		{name: batchNew, floors: []string{identifyNew}, run: func(ctx context.Context) (measured, error) {
			return s.identifyBatches(ctx, o, o.connections/2, true)
		}},
		{name: oneUnchanged, run: func(ctx context.Context) (measured, error) {
			return s.identifyUnchanged(ctx, byOne(o), func(ctx context.Context, id string, into *identified) error {
				return s.identify(ctx, id, "", false, into)
			})
		}},
		{name: oneNew, run: func(ctx context.Context) (measured, error) { return s.identifyNew(ctx, byOne(o)) }},
		{name: oneBatch, floors: []string{oneUnchanged}, run: func(ctx context.Context) (measured, error) {
			return s.identifyBatches(ctx, o, 1, false)
		}},
		{name: oneBatchNew, floors: []string{oneNew}, run: func(ctx context.Context) (measured, error) {
			return s.identifyBatches(ctx, o, 1, true)
		}},
		{name: listPosts, floors: []string{floorList}, seeded: true, run: func(ctx context.Context) (measured, error) {
			return s.listPages(ctx, o, "", newest)
		}},
		{name: searchTitles, floors: []string{floorSearch}, seeded: true, run: func(ctx context.Context) (measured, error) {
			return s.listPages(ctx, o, "&q="+wordOfTitles, fmt.Sprintf(found, "title", wordOfTitles))
		}},
		{name: searchTexts, floors: []string{floorSearch}, seeded: true, run: func(ctx context.Context) (measured, error) {
			return s.listPages(ctx, o, "&q="+wordOfTexts, fmt.Sprintf(found, "words", wordOfTexts))
		}},
		{name: getPost, floors: []string{floorGet}, seeded: true, run: func(ctx context.Context) (measured, error) { return s.getPosts(ctx, o) }},
		// The ratio shows the cost that HTML adds to the same list.
		{name: publicPage, floors: []string{listPosts}, seeded: true, run: func(ctx context.Context) (measured, error) {
			return s.readPages(ctx, o, 1)
		}},
		{name: publicPages, floors: []string{listPosts}, seeded: true, run: func(ctx context.Context) (measured, error) {
			return s.readPages(ctx, o, 2*publicPagesASecond)
		}},
	}
}

// publicPagesASecond exceeds the number of pages that the service can render in a second. With
// twice as many pages, each page has left the cache before it is read again.
const publicPagesASecond = 1500

// The expected posts of lists. A search returns posts with the word in their titles first.
const (
	newest = "SELECT id FROM posts WHERE board_id = $1 AND deleted_at IS NULL ORDER BY id DESC LIMIT $2"
	found  = `SELECT p.id FROM posts p JOIN post_documents d ON d.post_id = p.id WHERE p.board_id = $1 AND p.deleted_at IS NULL
AND d.%s @@ to_tsquery('english', '%s') ORDER BY p.id DESC LIMIT $2`
)

// arrivals returns the subjects that measure the time from a post to the arrival of its webhook.
func (s *stack) arrivals(o options) []subject {
	all := []subject{{name: postDelivered, floors: []string{floorEvent, floorEventPipe, floorEventGroup, floorWorkflow, floorGroup},
		run: func(ctx context.Context) (measured, error) { return s.deliveredInBurst(ctx, o) }}}
	for _, rate := range o.rates {
		all = append(all, subject{
			name: at(postDelivered, rate), floors: []string{at(floorEvent, rate)}, byLatency: true,
			run: func(ctx context.Context) (measured, error) { return s.deliveredAt(ctx, rate, o.period) },
		})
		if rate == o.rates[0] {
			all[len(all)-1].floors = append(all[len(all)-1].floors, at(floorWorkflow, rate))
		}
	}
	return all
}

func at(name string, rate int) string { return fmt.Sprintf("%s, at %d/s", name, rate) }

// floors returns the floors. There are many of them, so each runs for half the period.
func (s *stack) floors(o options) []subject {
	loop := func(name string, connections int, prepare func(context.Context) (operation, error)) subject {
		return subject{name: name, run: func(ctx context.Context) (measured, error) {
			op, err := prepare(ctx)
			if err != nil {
				return measured{}, err
			}
			return s.timed(ctx, func(ctx context.Context) (*latencies, error) {
				return closedLoop(ctx, o.period/2, unlimited, connections, op)
			})
		}}
	}
	plain := func(op operation) func(context.Context) (operation, error) {
		return func(context.Context) (operation, error) { return op, nil }
	}
	of := func(write func(context.Context, []statement) error, withDelivery bool) func(context.Context) (operation, error) {
		return plain(func(ctx context.Context, _ int) error { return write(ctx, s.rows.change(withDelivery)) })
	}
	rest, all := o.connections/2, o.connections
	list := []subject{
		loop(floorIdentify, rest, plain(s.floor.identify)),
		loop(floorContact, rest, plain(s.rows.contact)),
		loop(floorPost, rest, of(s.rows.oneByOne, false)),
		loop(floorPostPipe, rest, of(s.rows.pipelined, false)),
		loop(floorPostGroup, rest, plain(inGroups(s.rows.posts))),
		loop(floorEvent, all, of(s.rows.oneByOne, true)),
		loop(floorEventPipe, all, of(s.rows.pipelined, true)),
		loop(floorEventGroup, all, plain(inGroups(s.rows.delivered))),
		loop(floorVote, rest, s.rows.counting(oneVote, "vote_count", false)),
		loop(floorVoteGroup, rest, s.rows.counting(oneVote, "vote_count", true)),
		loop(floorComment, rest, s.rows.counting(oneComment, "comment_count", false)),
		loop(floorCommentGroup, rest, s.rows.counting(oneComment, "comment_count", true)),
		s.readFloor(loop(floorList, rest, plain(func(ctx context.Context, _ int) error {
			return s.rows.read(ctx, s.seeded.page(), pageRows, s.seeded.boardID())
		}))),
		s.readFloor(loop(floorSearch, rest, plain(func(ctx context.Context, _ int) error {
			return s.rows.read(ctx, s.seeded.page(), searchRows, s.seeded.boardID())
		}))),
		s.readFloor(loop(floorGet, rest, plain(func(ctx context.Context, i int) error {
			return s.rows.read(ctx, 1, postRow, s.seeded.posts[i*7919%len(s.seeded.posts)])
		}))),
		{name: floorWorkflow, run: func(ctx context.Context) (measured, error) {
			return s.timed(ctx, func(ctx context.Context) (*latencies, error) {
				// A fifth of a burst, because one workflow takes many milliseconds.
				return s.floor.workflows(ctx, max(1, o.posts/5), o.connections, 1)
			})
		}},
		{name: floorGroup, run: func(ctx context.Context) (measured, error) {
			return s.timed(ctx, func(ctx context.Context) (*latencies, error) {
				return s.floor.workflows(ctx, o.posts, o.connections, floorGroupSize)
			})
		}},
	}
	for _, rate := range o.rates {
		list = append(list, subject{name: at(floorEvent, rate), run: func(ctx context.Context) (measured, error) {
			return s.timed(ctx, func(ctx context.Context) (*latencies, error) {
				return openLoop(ctx, rate, o.period/2, func(ctx context.Context, _ int, _ time.Time) error {
					return s.rows.oneByOne(ctx, s.rows.change(true))
				})
			})
		}})
	}
	return append(list, subject{name: at(floorWorkflow, o.rates[0]), run: func(ctx context.Context) (measured, error) {
		return s.timed(ctx, func(ctx context.Context) (*latencies, error) { return s.floor.workflowsAt(ctx, o.rates[0], o.period) })
	}})
}

func (*stack) readFloor(b subject) subject {
	b.seeded = true
	return b
}
