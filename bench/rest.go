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
	"github.com/oapi-codegen/nullable"

	earshot "earshot/client"
	"earshot/internal/publicid"
)

// post makes one without a number: its slug would be taken in the next round,
// and the search for a free one isn't the subject.
func (t tenant) post(ctx context.Context, board string) (id string, err error) {
	return t.createPost(ctx, board, "Bench "+uuid.NewString())
}

func (t tenant) createPost(ctx context.Context, board, title string) (id string, err error) {
	answer, err := t.api.CreatePostWithResponse(ctx, board, earshot.CreatePostRequest{Title: title})
	if err != nil {
		return "", errors.Wrap(err, "create a post")
	}
	if answer.JSON201 == nil {
		return "", errors.Errorf("create a post: %s: %s", answer.Status(), answer.Body)
	}
	return answer.JSON201.Data.ID, nil
}

func (t tenant) comment(ctx context.Context, on string) (id string, err error) {
	answer, err := t.api.CreateCommentWithResponse(ctx, on, earshot.CreateCommentRequest{
		Body: earshot.CommentBodyInput{Text: "Me too, and in landscape."},
	})
	if err != nil {
		return "", errors.Wrap(err, "comment")
	}
	if answer.JSON201 == nil {
		return "", errors.Errorf("comment: %s: %s", answer.Status(), answer.Body)
	}
	return answer.JSON201.Data.ID, nil
}

// vote is the first one of the key's member on the post.
func (t tenant) vote(ctx context.Context, on, key string) (id string, err error) {
	answer, err := t.api.CastVoteWithBodyWithResponse(ctx, on, "", nil, func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+key)
		return nil
	})
	if err != nil {
		return "", errors.Wrap(err, "vote")
	}
	if answer.JSON201 == nil {
		return "", errors.Errorf("vote: %s: %s", answer.Status(), answer.Body)
	}
	return answer.JSON201.Data.ID, nil
}

// identified are contacts by the caller's own id.
type identified struct {
	mu   sync.Mutex
	told map[string]string
}

// note returns an error when the same contact has two ids.
func (d *identified) note(externalID, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if before, ok := d.told[externalID]; ok && before != id {
		return errors.Errorf("the contact %s has two ids, %s and %s", externalID, before, id)
	}
	d.told[externalID] = id
	return nil
}

// identify returns an error unless the contact was there before, or wasn't, as fresh says.
func (t tenant) identify(ctx context.Context, externalID, plan string, fresh bool, into *identified) error {
	in := contactOf(externalID)
	if plan != "" {
		in.Plan = nullable.NewNullableWithValue(plan)
	}
	answer, err := t.api.IdentifyContactWithResponse(ctx, in)
	if err != nil {
		return errors.Wrap(err, "identify")
	}
	if fresh && answer.JSON201 != nil {
		return into.note(externalID, answer.JSON201.Data.ID)
	}
	if !fresh && answer.JSON200 != nil {
		return into.note(externalID, answer.JSON200.Data.ID)
	}
	return errors.Errorf("identify: %s: %s", answer.Status(), answer.Body)
}

// contact makes one that nobody knows.
func (t tenant) contact(ctx context.Context) error {
	answer, err := t.api.CreateContactWithResponse(ctx, earshot.CreateContactRequest{
		ExternalUserID: nullable.NewNullableWithValue(uuid.NewString()),
	})
	if err != nil {
		return errors.Wrap(err, "create a contact")
	}
	if answer.JSON201 == nil {
		return errors.Errorf("create a contact: %s: %s", answer.Status(), answer.Body)
	}
	return nil
}

// register makes a webhook and returns what removes it.
func (t tenant) register(ctx context.Context, url string, event earshot.EventType) (made earshot.WebhookWithSecret, remove func(), err error) {
	answer, err := t.api.CreateWebhookWithResponse(ctx, earshot.CreateWebhookRequest{
		URL: url, Events: []earshot.EventType{event},
	})
	if err != nil {
		return made, nil, errors.Wrap(err, "register the webhook")
	}
	if answer.JSON201 == nil {
		return made, nil, errors.Errorf("register the webhook: %s: %s", answer.Status(), answer.Body)
	}
	made = answer.JSON201.Data
	return made, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_, _ = t.api.DeleteWebhookWithResponse(ctx, made.ID)
	}, nil
}

// get reads a path as it is; to decode it would be the client's time.
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

// sameEachTime reads the path once; what it returns reads it again, and wants the same answer.
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

// listed is how many posts a list has in the figures.
const listed = 30

// getPost wants the post that it asks for.
func (t tenant) getPost(ctx context.Context, id publicid.Post) error {
	body, err := t.get(ctx, "/v1/posts/"+id.String())
	if err == nil && !strings.Contains(string(body), id.String()) {
		err = errors.Errorf("the post %s is another one: %s", id, body)
	}
	return err
}
