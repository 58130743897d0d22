package main

import (
	"context"
	"fmt"

	"earshot/e2e/faults/check"
	earshot "earshot/sdk/go"
)

// written is an acknowledged change.
type written struct {
	// subject is the id of the new object, and event the type of its event.
	subject, event string
}

// task is one write of the load.
type task struct {
	number int
	// key is sent as the Idempotency-Key of each try. "" sends none.
	key string
	// on is the post that the task refers to. It is chosen once, so that a request with a key stays
	// the same.
	on string
}

// keyedShare: one write in three has an Idempotency-Key.
const keyedShare = 3

// task is number i of the load.
func (t *tenant) task(i int) task {
	w := task{number: i, on: t.lastPost()}
	if i%keyedShare == 0 {
		w.key = fmt.Sprintf("%s-%d", t.board, i)
	}
	return w
}

// words returns the title, the text or the name of the new object.
func (w task) words(of string) string {
	if w.key != "" {
		return fmt.Sprintf("%s%s %d", check.Once, of, w.number)
	}
	return fmt.Sprintf("%s %d", of, w.number)
}

// withKey returns the option that sends the key.
func (w task) withKey() []earshot.CallOption {
	if w.key == "" {
		return nil
	}
	return []earshot.CallOption{earshot.IdempotencyKey(w.key)}
}

// write does a task of the load. After an error it is unknown whether the write took effect. A
// repetition is safe: a write with a key takes effect once, and a contact is identified by its
// number. Other writes may be made twice.
func (t *tenant) write(ctx context.Context, w task) (written, error) {
	switch {
	case w.number%4 == 0:
		return t.writePost(ctx, w.words("idea"), w.withKey()...)
	case w.number%4 == 1 && w.on != "":
		return t.writeComment(ctx, w)
	case w.key != "":
		return t.createContact(ctx, w)
	}
	return t.identify(ctx, w.number)
}

func (t *tenant) writePost(ctx context.Context, title string, with ...earshot.CallOption) (written, error) {
	var answer earshot.Answer
	made, err := t.api.Posts.Create(ctx, t.board, earshot.CreatePostRequest{Title: title}, append(with, earshot.WithAnswer(&answer))...)
	if err != nil {
		return written{}, err
	}
	t.countReplayed(answer)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.post = made.ID
	return written{t.post, postCreated}, nil
}

// countReplayed counts an answer to a request that had already taken effect.
func (t *tenant) countReplayed(a earshot.Answer) {
	if a.Header.Get("Idempotent-Replayed") != "" {
		t.replayed.Add(1)
	}
}

// createContact makes a contact. Only its idempotency key prevents a duplicate.
func (t *tenant) createContact(ctx context.Context, w task) (written, error) {
	var answer earshot.Answer
	made, err := t.api.Contacts.Create(ctx, earshot.CreateContactRequest{Name: earshot.Some(w.words("person"))},
		append(w.withKey(), earshot.WithAnswer(&answer))...)
	if err != nil {
		return written{}, err
	}
	t.countReplayed(answer)
	return written{made.ID, contactCreated}, nil
}

func (t *tenant) lastPost() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.post
}

func (t *tenant) writeComment(ctx context.Context, w task) (written, error) {
	var answer earshot.Answer
	made, err := t.api.Comments.Create(ctx, w.on, earshot.CreateCommentRequest{
		Body: earshot.CommentBodyInput{Text: w.words("comment")},
	}, append(w.withKey(), earshot.WithAnswer(&answer))...)
	if err != nil {
		return written{}, err
	}
	t.countReplayed(answer)
	return written{made.ID, commentCreated}, nil
}

func (t *tenant) identify(ctx context.Context, i int) (written, error) {
	made, err := t.api.Contacts.Identify(ctx, earshot.IdentifyContactRequest{ExternalUserID: fmt.Sprintf("user-%d", i)})
	if err != nil {
		return written{}, err
	}
	return written{made.ID, contactCreated}, nil // It may have existed before, if an earlier answer was lost.
}
