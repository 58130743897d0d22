// Package demo fills an organization with a realistic product, through the public API only.
package demo

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-faster/errors"
	"go.yaml.in/yaml/v3"

	"earshot/internal/devstack"
	earshot "earshot/sdk/go"
	"earshot/webhook"
)

// text is the product of the demo. Its first lines explain the format.
//
//go:embed demo.yaml
var text []byte

// product is the content of demo.yaml.
type product struct {
	Contacts struct {
		Plans []struct {
			Name     string
			Count    int
			MRRCents int64 `yaml:"mrrCents"`
		}
		Names []string
	}
	Boards    []board
	Changelog []struct {
		Title, Version, Text string
		In                   time.Duration
		Posts                []string
	}
}

type board struct {
	Name, Description string
	Tags              []struct{ Name, Color string }
	Posts             []struct {
		Title, Text    string
		Status         earshot.PostStatus
		Tags, Comments []string
		Votes          int
	}
}

const (
	// state is the key of the webhook's metadata with the progress of the demo.
	state, begun, complete = "demo", "begun", "complete"
	// firstBoard is the key of the webhook's metadata with the id of the demo's first board. The service
	// chooses the slug, because the organization may already have a board with that name.
	firstBoard = "demo-board"
	// currency is the currency of the contacts' revenue.
	currency = "EUR"
	// headerTimeout closes connections that send no request.
	headerTimeout = 10 * time.Second
	// RetryDelays are short, so that a person sees deliveries fail for good, after some six minutes.
	RetryDelays = "5s,20s,1m,5m"
)

// demo fills the organization of a running stack, through the public API only, and receives its webhook.
//
// Every write has a fixed idempotency key, so a start that follows an interrupted one repeats nothing.
type demo struct {
	product
	client   *earshot.Client
	report   devstack.Report
	receiver *receiver
	webhook  *earshot.Webhook
	posts    map[string]string // ids by title
	contacts []string          // ids
	next     int               // the contact that votes or comments next
}

// Start runs the receiver and fills the organization, unless an earlier start filled it. It returns the
// address of the first public board. The receiver runs until stop is called.
func Start(ctx context.Context, baseURL, key string, report devstack.Report) (address string, stop func(), err error) {
	d := &demo{report: report, posts: map[string]string{}}
	if err := yaml.Unmarshal(text, &d.product); err != nil {
		return "", nil, errors.Wrap(err, "read demo.yaml")
	}
	if d.client, err = earshot.New(earshot.Options{BaseURL: baseURL, APIKey: key}); err != nil {
		return "", nil, errors.Wrap(err, "reach the service")
	}
	if d.receiver, err = newReceiver(); err != nil {
		return "", nil, err
	}
	if address, err = d.run(ctx, baseURL); err != nil {
		d.receiver.stop()
		return "", nil, err
	}
	return address, d.receiver.stop, nil
}

func (d *demo) run(ctx context.Context, baseURL string) (address string, err error) {
	if err := d.provideWebhook(ctx); err != nil {
		return "", errors.Wrap(err, "provide the webhook")
	}
	if d.webhook.Metadata[state] != complete {
		if err := d.fill(ctx); err != nil {
			return "", errors.Wrap(err, "fill the demo")
		}
	}
	id := d.webhook.Metadata[firstBoard] // Demos of earlier versions have none.
	for board, err := range d.client.Boards.List(ctx, earshot.ListBoardsParams{}).All() {
		if err != nil {
			return "", errors.Wrap(err, "look for the board")
		}
		if board.ID == id || id == "" && board.Name == d.Boards[0].Name {
			return baseURL + "/b/" + board.OrganizationID + "/" + board.Slug, nil
		}
	}
	return "", errors.Errorf("the demo's board %q was deleted: start without the demo, or begin anew", d.Boards[0].Name)
}

// provideWebhook makes the webhook, or leads the one of an earlier start to this receiver.
func (d *demo) provideWebhook(ctx context.Context) error {
	for w, err := range d.client.Webhooks.List(ctx, earshot.ListWebhooksParams{}).All() {
		if err != nil {
			return err
		}
		if w.Metadata[state] == "" {
			continue
		}
		// Only its registration answered the secret.
		rotated, err := d.client.Webhooks.RotateSecret(ctx, w.ID, earshot.RotateWebhookSecretRequest{OverlapSeconds: earshot.Ptr(int64(0))})
		if err != nil {
			return err
		}
		d.receiver.secret.Store(&rotated.Secret)
		d.webhook, err = d.client.Webhooks.Update(ctx, w.ID, earshot.UpdateWebhookRequest{URL: &d.receiver.url, Enabled: earshot.Ptr(true)})
		return err
	}
	made, err := d.client.Webhooks.Create(ctx, earshot.CreateWebhookRequest{
		URL: d.receiver.url, Description: earshot.Some("Demo: a receiver that refuses some events"),
		Metadata: map[string]string{state: begun},
		Events: []earshot.EventType{
			earshot.EventTypePostCreated, earshot.EventTypePostStatusChanged, earshot.EventTypeVoteCreated,
			earshot.EventTypeCommentCreated, earshot.EventTypeChangelogPublished, earshot.EventTypeContactCreated,
		},
	})
	if err != nil {
		return err
	}
	d.receiver.secret.Store(&made.Secret)
	d.webhook, err = d.client.Webhooks.Get(ctx, made.ID)
	return err
}

func (d *demo) fill(ctx context.Context) error {
	d.report("filling boards, posts, comments, votes and a changelog: this takes a few seconds")
	if err := d.identifyContacts(ctx); err != nil {
		return err
	}
	first := ""
	for _, b := range d.Boards {
		id, err := d.fillBoard(ctx, b)
		if err != nil {
			return err
		}
		if first == "" {
			first = id
		}
		d.report("%s: %d posts", b.Name, len(b.Posts))
	}
	if err := d.fillChangelog(ctx, first); err != nil {
		return err
	}
	var err error
	d.webhook, err = d.client.Webhooks.Update(ctx, d.webhook.ID, earshot.UpdateWebhookRequest{
		Metadata: map[string]string{state: complete, firstBoard: first},
	})
	return err
}

func (d *demo) identifyContacts(ctx context.Context) error {
	var batch []earshot.IdentifyContactRequest
	for _, plan := range d.Contacts.Plans {
		for range plan.Count {
			name := d.Contacts.Names[len(batch)]
			word := strings.ToLower(strings.ReplaceAll(name, " ", "."))
			batch = append(batch, earshot.IdentifyContactRequest{
				ExternalUserID: "demo-" + word, Name: earshot.Some(name), Email: earshot.Some(word + "@example.com"),
				Plan: earshot.Some(plan.Name), MRRCents: earshot.Some(plan.MRRCents), Currency: earshot.Some(currency),
			})
		}
	}
	identified, err := d.client.Contacts.IdentifyBatch(ctx, earshot.IdentifyContactsRequest{Contacts: batch})
	if err != nil {
		return err
	}
	for i, result := range identified {
		if result.Contact == nil {
			return errors.Errorf("%s was refused: %s", batch[i].ExternalUserID, result.Error.Message)
		}
		d.contacts = append(d.contacts, result.Contact.ID)
	}
	return nil
}

// contact returns another contact at each call, until all had their turn. The stride has no divisor in common
// with the 40 contacts.
func (d *demo) contact() string {
	d.next++
	return d.contacts[d.next*7%len(d.contacts)]
}

func idempotencyKey(parts ...any) earshot.CallOption {
	return earshot.IdempotencyKey("demo" + fmt.Sprintf(strings.Repeat("-%v", len(parts)), parts...))
}

func (d *demo) fillBoard(ctx context.Context, b board) (id string, err error) {
	board, err := d.client.Boards.Create(ctx, earshot.CreateBoardRequest{
		Name: b.Name, Description: &b.Description, Public: earshot.Ptr(true),
	}, idempotencyKey(b.Name))
	if err != nil {
		return "", err
	}
	tags := map[string]string{}
	for _, t := range b.Tags {
		tag, err := d.client.Tags.Create(ctx, board.ID, earshot.CreateTagRequest{Name: t.Name, Color: &t.Color}, idempotencyKey(b.Name, "tag", t.Name))
		if err != nil {
			return "", err
		}
		tags[t.Name] = tag.ID
	}
	for i := range slices.Backward(b.Posts) { // so that the newest is the first of the file
		if err := d.fillPost(ctx, b, i, board.ID, tags); err != nil {
			return "", errors.Wrap(err, b.Posts[i].Title)
		}
	}
	return board.ID, nil
}

func (d *demo) fillPost(ctx context.Context, b board, i int, board string, tags map[string]string) error {
	p := b.Posts[i]
	ids := []string(nil)
	for _, name := range p.Tags {
		if tags[name] == "" {
			return errors.Errorf("demo.yaml: the board %s has no tag %s", b.Name, name)
		}
		ids = append(ids, tags[name])
	}
	made, err := d.client.Posts.Create(ctx, board, earshot.CreatePostRequest{
		Title: p.Title, Body: &earshot.PostBodyInput{Text: &p.Text}, TagIDs: ids, ContactID: earshot.Some(d.contact()),
	}, idempotencyKey(b.Name, i))
	if err != nil {
		return err
	}
	d.posts[p.Title] = made.ID
	for range p.Votes { // a vote that is there already counts once
		if _, err := d.client.Votes.Cast(ctx, made.ID, earshot.CastVoteRequest{ContactID: earshot.Ptr(d.contact())}); err != nil {
			return err
		}
	}
	for n, text := range p.Comments {
		comment := earshot.CreateCommentRequest{}
		var byMember bool
		if comment.Body.Text, byMember = strings.CutPrefix(text, "team: "); !byMember {
			comment.ContactID = earshot.Ptr(d.contact())
		}
		if _, err := d.client.Comments.Create(ctx, made.ID, comment, idempotencyKey(b.Name, i, "comment", n)); err != nil {
			return err
		}
	}
	if p.Status == "" {
		return nil
	}
	_, err = d.client.Posts.Update(ctx, made.ID, earshot.UpdatePostRequest{Status: &p.Status})
	return err
}

func (d *demo) fillChangelog(ctx context.Context, board string) error {
	for i, e := range d.Changelog {
		entry, err := d.client.Changelog.Create(ctx, board, earshot.CreateChangelogEntryRequest{
			Title: e.Title, Version: earshot.Some(e.Version), Body: &earshot.PostBodyInput{Text: &e.Text},
		}, idempotencyKey("entry", i))
		if err != nil {
			return err
		}
		var posts []string
		for _, title := range e.Posts {
			if d.posts[title] == "" {
				return errors.Errorf("demo.yaml: there is no post %q", title)
			}
			posts = append(posts, d.posts[title])
		}
		if _, err := d.client.Changelog.ReplaceLinkedPosts(ctx, entry.ID, earshot.ReplaceLinkedPostsRequest{PostIDs: posts}); err != nil {
			return err
		}
		if _, err := d.client.Changelog.Update(ctx, entry.ID, earshot.UpdateChangelogEntryRequest{
			PublishedAt: earshot.Some(time.Now().Add(e.In)),
		}); err != nil {
			return err
		}
	}
	return nil
}

// receiver receives the demo's webhook. It refuses declined posts and changelog entries, so that there are
// deliveries that fail.
type receiver struct {
	url    string
	secret atomic.Pointer[string] // set when the webhook is known
	server *http.Server
}

func newReceiver() (*receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Wrap(err, "listen for the demo's webhook")
	}
	r := &receiver{url: "http://" + listener.Addr().String() + "/webhooks/earshot"}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: headerTimeout}
	go func() { _ = r.server.Serve(listener) }() // ends with stop
	return r, nil
}

func (r *receiver) stop() { _ = r.server.Close() }

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, webhook.MaxBody))
	secret := r.secret.Load()
	if err != nil || secret == nil {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	event, err := earshot.Unwrap(body, request.Header, *secret)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	refused := false
	switch e := event.(type) {
	case *earshot.PostStatusChangedEvent:
		refused = e.Post.Status == earshot.PostStatusDeclined
	case *earshot.ChangelogPublishedEvent:
		refused = true
	}
	if refused {
		http.Error(w, "The search index is being rebuilt. Try again later.", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "indexed")
}
