package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-faster/errors"

	"earshot/e2e/faults/receiver"
	"earshot/internal/publicid"
	earshot "earshot/sdk/go"
)

const (
	// requestTimeout bounds a request to the API, which may be cut off from its database. After a
	// timeout the client doesn't know whether the request took effect.
	requestTimeout = 10 * time.Second
	// afresh is the tenant that opens a connection for each request, because a restart affects new
	// and idle connections differently.
	afresh = "mixed"

	idempotencyKey = "Idempotency-Key"
)

// The events that the harness causes.
const (
	commentCreated = "comment.created"
	contactDeleted = "contact.deleted"
	voteCreated    = "vote.created"
	contactCreated = "contact.created"
	postCreated    = "post.created"
	published      = "changelog.published"
)

// tenant is an organization with its API key, a board and webhooks.
type tenant struct {
	name  string
	key   string
	api   *earshot.Client
	board string

	// replayed counts answers to requests that had already taken effect.
	replayed atomic.Int64

	mu   sync.Mutex
	post string // The last acknowledged one.
}

// hook is a webhook of a tenant.
type hook struct {
	id publicid.Webhook
	// endpoint is the receiver's name of the webhook.
	endpoint, secret string
}

// newTenant makes an organization with a board. Its client reaches the API at the URL.
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
	t.api, err = earshot.New(earshot.Options{
		APIKey: made.Key, BaseURL: url, Timeout: requestTimeout, MaxRetries: earshot.Ptr(0), // The load repeats requests.
		HTTPClient: &http.Client{Transport: ownKeys{&http.Transport{
			MaxIdleConnsPerHost: r.options.connections, DisableKeepAlives: name == afresh,
		}}},
	})
	if err != nil {
		return nil, errors.Wrap(err, "make a client")
	}
	board, err := t.api.Boards.Create(ctx, earshot.CreateBoardRequest{Name: "Ideas"})
	if err != nil {
		return nil, errors.Wrap(err, "create a board")
	}
	t.board = board.ID
	return t, nil
}

// ownKeys removes every Idempotency-Key except those of tasks, which begin with a board's id. The
// load sends most writes without a key.
type ownKeys struct{ *http.Transport }

func (o ownKeys) RoundTrip(q *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(q.Header.Get(idempotencyKey), "brd_") {
		q = q.Clone(q.Context())
		q.Header.Del(idempotencyKey)
	}
	return o.Transport.RoundTrip(q)
}

// subscribe makes a webhook of the tenant for the load's events. The receiver's endpoint has the
// given behaviour.
func (r *run) subscribe(ctx context.Context, t *tenant, b receiver.Behaviour) (hook, error) {
	endpoint := fmt.Sprintf("%s-%s", t.name, b)
	h, err := t.register(ctx, r.receiverURL+receiver.Prefix+endpoint, postCreated, commentCreated, voteCreated, contactCreated, contactDeleted, published)
	if err != nil {
		return h, err
	}
	h.endpoint = endpoint
	r.endpoints[h.id.String()] = endpoint
	r.behave(h, b)
	return h, nil
}

// register makes a webhook of the tenant.
func (t *tenant) register(ctx context.Context, url string, events ...earshot.EventType) (hook, error) {
	made, err := t.api.Webhooks.Create(ctx, earshot.CreateWebhookRequest{URL: url, Events: events})
	if err != nil {
		return hook{}, errors.Wrap(err, "register a webhook")
	}
	id, err := publicid.Parse[publicid.Webhook](made.ID)
	if err != nil {
		return hook{}, errors.Wrap(err, "read the webhook's id")
	}
	return hook{id: id, secret: made.Secret}, nil
}

// behave changes how a webhook's endpoint answers.
func (r *run) behave(h hook, b receiver.Behaviour) {
	r.receiver.Add(receiver.Endpoint{Name: h.endpoint, Secret: h.secret, Behaviour: b})
}
