package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"earshot/internal/publicid"
	earshot "earshot/sdk/go"
)

// post creates a post with a random title. A numbered title would repeat in the next round, and the
// search for a free slug isn't part of the measurement.
func (t tenant) post(ctx context.Context, board string) (id string, err error) {
	return t.createPost(ctx, board, "Bench "+uuid.NewString())
}

func (t tenant) createPost(ctx context.Context, board, title string) (id string, err error) {
	made, err := t.api.Posts.Create(ctx, board, earshot.CreatePostRequest{Title: title})
	if err != nil {
		return "", errors.Wrap(err, "create a post")
	}
	return made.ID, nil
}

func (t tenant) comment(ctx context.Context, on string) (id string, err error) {
	made, err := t.api.Comments.Create(ctx, on, earshot.CreateCommentRequest{
		Body: earshot.CommentBodyInput{Text: "Me too, and in landscape."},
	})
	if err != nil {
		return "", errors.Wrap(err, "comment")
	}
	return made.ID, nil
}

// vote casts the first vote of the key's member on the post.
func (t tenant) vote(ctx context.Context, on, key string) (id string, err error) {
	api, err := newClient(t.base, key, keyless{t.http.Transport})
	if err != nil {
		return "", err
	}
	var answer earshot.Answer
	made, err := api.Votes.Cast(ctx, on, earshot.CastVoteRequest{}, earshot.WithAnswer(&answer))
	if err != nil {
		return "", errors.Wrap(err, "vote")
	}
	if answer.Status != http.StatusCreated {
		return "", errors.Errorf("vote: the member has voted before, by %s", made.ID)
	}
	return made.ID, nil
}

// identified maps the external ids of contacts to the ids in the answers.
type identified struct {
	mu   sync.Mutex
	told map[string]string
}

// note returns an error if a contact has two ids.
func (d *identified) note(externalID, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if before, ok := d.told[externalID]; ok && before != id {
		return errors.Errorf("the contact %s has two ids, %s and %s", externalID, before, id)
	}
	d.told[externalID] = id
	return nil
}

// identify identifies a contact. It returns an error unless the contact is new if fresh is true, or
// was known before if it is false.
func (t tenant) identify(ctx context.Context, externalID, plan string, fresh bool, into *identified) error {
	in := contactOf(externalID)
	if plan != "" {
		in.Plan = earshot.Some(plan)
	}
	var answer earshot.Answer
	known, err := t.api.Contacts.Identify(ctx, in, earshot.WithAnswer(&answer))
	if err != nil {
		return errors.Wrap(err, "identify")
	}
	if fresh != (answer.Status == http.StatusCreated) {
		return errors.Errorf("identify: %d for %s", answer.Status, externalID)
	}
	return into.note(externalID, known.ID)
}

// contact creates a contact with a new external id.
func (t tenant) contact(ctx context.Context) error {
	if _, err := t.api.Contacts.Create(ctx, earshot.CreateContactRequest{ExternalUserID: earshot.Some(uuid.NewString())}); err != nil {
		return errors.Wrap(err, "create a contact")
	}
	return nil
}

// register creates a webhook. The function remove deletes it.
func (t tenant) register(ctx context.Context, url string, event earshot.EventType) (made *earshot.WebhookWithSecret, remove func(), err error) {
	made, err = t.api.Webhooks.Create(ctx, earshot.CreateWebhookRequest{URL: url, Events: []earshot.EventType{event}})
	if err != nil {
		return nil, nil, errors.Wrap(err, "register the webhook")
	}
	return made, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_, _ = t.api.Webhooks.Delete(ctx, made.ID)
	}, nil
}

// get reads the raw answer of a path. Decoding would count as the client's time.
func (t tenant) get(ctx context.Context, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.base+path, nil)
	if err != nil {
		return nil, errors.Wrap(err, "make a request")
	}
	r.Header.Set("Authorization", "Bearer "+t.key)
	answer, err := t.http.Do(r)
	if err != nil {
		return nil, errors.Wrap(err, "read")
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, errors.Wrap(err, "read")
	}
	if answer.StatusCode != http.StatusOK {
		return nil, errors.Errorf("read %s: %s: %s", path, answer.Status, body)
	}
	return body, nil
}

// sameEachTime reads the path once. The operation again reads it again and returns an error if the
// answer has changed.
func (t tenant) sameEachTime(ctx context.Context, path string) (first []byte, again operation, err error) {
	if first, err = t.get(ctx, path); err != nil {
		return nil, nil, err
	}
	return first, func(ctx context.Context, _ int) error {
		body, err := t.get(ctx, path)
		if err == nil && !bytes.Equal(body, first) {
			err = errors.Errorf("%s has another answer than before, though nothing changed: %s", path, body)
		}
		return err
	}, nil
}

func (t tenant) postsPath(query string) string {
	return fmt.Sprintf("/v1/boards/%s/posts?limit=%d%s", t.board, listed, query)
}

// listed is the number of posts in a list.
const listed = 30

// getPost reads a post and checks its id.
func (t tenant) getPost(ctx context.Context, id publicid.Post) error {
	body, err := t.get(ctx, "/v1/posts/"+id.String())
	if err == nil && !strings.Contains(string(body), id.String()) {
		err = errors.Errorf("the post %s is another one: %s", id, body)
	}
	return err
}
