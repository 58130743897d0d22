package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-faster/errors"
	"github.com/oapi-codegen/nullable"

	"earshot/client"
	"earshot/e2e/faults/check"
	"earshot/e2e/faults/receiver"
	"earshot/internal/publicid"
)

const (
	// requestTimeout bounds a request to the API, which may be cut off from its
	// database. The caller then doesn't know whether it was done.
	requestTimeout = 10 * time.Second
	// afresh is the tenant that makes a connection for each request: what a restart does to
	// a new connection isn't what it does to one that waits.
	afresh = "mixed"
)

// The events that the harness causes.
const (
	commentCreated = "comment.created"
	contactCreated = "contact.created"
	postCreated    = "post.created"
	published      = "changelog.published"
)

// tenant is an organization with its key, a board and webhooks.
type tenant struct {
	name  string
	key   string
	api   *client.ClientWithResponses
	board string

	// replayed counts answers of requests that had taken effect before.
	replayed atomic.Int64

	mu   sync.Mutex
	post string // the last one that was acknowledged
}

// hook is a webhook of a tenant.
type hook struct {
	id publicid.Webhook
	// endpoint is the receiver's name of it.
	endpoint, secret string
}

// newTenant makes an organization with a board, whose clients reach the API at the URL.
func (r *run) newTenant(ctx context.Context, name, url string) (*tenant, error) {
	var org struct{ ID string }
	var made struct{ Key string }
	if err := r.stack.command(ctx, &org, "org", "create", name, "--json"); err != nil {
		return nil, err
	}
	if err := r.stack.command(ctx, &made, "key", "create", "--org", org.ID, "--json"); err != nil {
		return nil, err
	}
	t := &tenant{name: name, key: made.Key}
	var err error
	t.api, err = client.NewClientWithResponses(url,
		client.WithHTTPClient(&http.Client{Timeout: requestTimeout, Transport: &http.Transport{
			MaxIdleConnsPerHost: r.options.connections, DisableKeepAlives: name == afresh,
		}}),
		client.WithRequestEditorFn(func(_ context.Context, q *http.Request) error {
			q.Header.Set("Authorization", "Bearer "+made.Key)
			return nil
		}))
	if err != nil {
		return nil, errors.Wrap(err, "make a client")
	}
	board, err := t.api.CreateBoardWithResponse(ctx, client.CreateBoardRequest{Name: "Ideas"})
	if err != nil {
		return nil, errors.Wrap(err, "create a board")
	}
	if board.JSON200 == nil {
		return nil, errors.Errorf("create a board: %s: %s", board.Status(), board.Body)
	}
	t.board = board.JSON200.Data.ID
	return t, nil
}

// subscribe makes a webhook of the tenant for the events of the load, on an endpoint of
// the receiver that behaves so.
func (r *run) subscribe(ctx context.Context, t *tenant, b receiver.Behaviour) (hook, error) {
	endpoint := fmt.Sprintf("%s-%s", t.name, b)
	h, err := t.register(ctx, r.receiverURL+receiver.Prefix+endpoint, postCreated, commentCreated, contactCreated, published)
	if err != nil {
		return h, err
	}
	h.endpoint = endpoint
	r.endpoints[h.id.String()] = endpoint
	r.behave(h, b)
	return h, nil
}

// register makes a webhook of the tenant.
func (t *tenant) register(ctx context.Context, url string, events ...client.EventType) (hook, error) {
	made, err := t.api.CreateWebhookWithResponse(ctx, client.CreateWebhookRequest{URL: url, Events: events})
	if err != nil {
		return hook{}, errors.Wrap(err, "register a webhook")
	}
	if made.JSON201 == nil {
		return hook{}, errors.Errorf("register a webhook: %s: %s", made.Status(), made.Body)
	}
	id, err := publicid.Parse[publicid.Webhook](made.JSON201.Data.ID)
	if err != nil {
		return hook{}, errors.Wrap(err, "read the webhook's id")
	}
	return hook{id: id, secret: made.JSON201.Data.Secret}, nil
}

// behave changes how a webhook's endpoint answers.
func (r *run) behave(h hook, b receiver.Behaviour) {
	r.receiver.Add(receiver.Endpoint{Name: h.endpoint, Secret: h.secret, Behaviour: b})
}

// written is a change that was acknowledged.
type written struct {
	// subject is the id of what was made, event the type of the event that this makes.
	subject, event string
}

// task is one thing that the load wants done.
type task struct {
	number int
	// key is sent as the Idempotency-Key, each time that it is asked for; "" is none.
	key string
	// on is the post that it is about, chosen once: a request with a key stays the same.
	on string
}

// keyedShare: one write of so many is sent with an Idempotency-Key.
const keyedShare = 3

// task is number i of the load.
func (t *tenant) task(i int) task {
	todo := task{number: i, on: t.lastPost()}
	if i%keyedShare == 0 {
		todo.key = fmt.Sprintf("%s-%d", t.board, i)
	}
	return todo
}

// words are the title, the text or the name of what it makes.
func (w task) words(of string) string {
	if w.key != "" {
		return fmt.Sprintf("%s%s %d", check.Once, of, w.number)
	}
	return fmt.Sprintf("%s %d", of, w.number)
}

// withKey sends the key.
func (w task) withKey(_ context.Context, q *http.Request) error {
	if w.key != "" {
		q.Header.Set("Idempotency-Key", w.key)
	}
	return nil
}

// write does a task of the load; an error says that it isn't known whether it was done.
// Asking again is safe: what has a key takes effect once, a contact is identified by the
// number, the others are made once more.
func (t *tenant) write(ctx context.Context, w task) (written, error) {
	switch {
	case w.number%4 == 0:
		return t.writePost(ctx, w.words("idea"), w.withKey)
	case w.number%4 == 1 && w.on != "":
		return t.writeComment(ctx, w)
	case w.key != "":
		return t.createContact(ctx, w)
	}
	return t.identify(ctx, w.number)
}

func (t *tenant) writePost(ctx context.Context, title string, with ...client.RequestEditorFn) (written, error) {
	made, err := t.api.CreatePostWithResponse(ctx, t.board, client.CreatePostRequest{Title: title}, with...)
	if err != nil {
		return written{}, err
	}
	if made.JSON201 == nil {
		return written{}, errors.New(made.Status())
	}
	t.countReplayed(made.HTTPResponse)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.post = made.JSON201.Data.ID
	return written{t.post, postCreated}, nil
}

// countReplayed counts answers of requests that had taken effect before.
func (t *tenant) countReplayed(r *http.Response) {
	if r.Header.Get("Idempotent-Replayed") != "" {
		t.replayed.Add(1)
	}
}

// createContact makes a contact that nothing but the key keeps from being made twice.
func (t *tenant) createContact(ctx context.Context, w task) (written, error) {
	made, err := t.api.CreateContactWithResponse(ctx, client.CreateContactRequest{
		ContactTraits: client.ContactTraits{Name: nullable.NewNullableWithValue(w.words("person"))},
	}, w.withKey)
	if err != nil {
		return written{}, err
	}
	if made.JSON201 == nil {
		return written{}, errors.New(made.Status())
	}
	t.countReplayed(made.HTTPResponse)
	return written{made.JSON201.Data.ID, contactCreated}, nil
}

func (t *tenant) lastPost() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.post
}

func (t *tenant) writeComment(ctx context.Context, w task) (written, error) {
	made, err := t.api.CreateCommentWithResponse(ctx, w.on, client.CreateCommentRequest{
		Body: client.CommentBodyInput{Text: w.words("comment")},
	}, w.withKey)
	if err != nil {
		return written{}, err
	}
	if made.JSON201 == nil {
		return written{}, errors.New(made.Status())
	}
	t.countReplayed(made.HTTPResponse)
	return written{made.JSON201.Data.ID, commentCreated}, nil
}

func (t *tenant) identify(ctx context.Context, i int) (written, error) {
	made, err := t.api.IdentifyContactWithResponse(ctx, client.IdentifyContactRequest{
		ExternalUserID: fmt.Sprintf("user-%d", i),
	})
	if err != nil {
		return written{}, err
	}
	switch {
	case made.JSON201 != nil:
		return written{made.JSON201.Data.ID, contactCreated}, nil
	case made.JSON200 != nil: // its first answer was lost
		return written{made.JSON200.Data.ID, contactCreated}, nil
	default:
		return written{}, errors.New(made.Status())
	}
}
