package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"

	"earshot/internal/event"
)

const (
	// triggerName is part of the name of every created resource. It marks the resource as test
	// data.
	triggerName = "earshot trigger"
	// triggerSlug is the slug of the board that all runs share.
	triggerSlug = "earshot-trigger"
)

// triggerResult is the output of `trigger --json`.
type triggerResult struct {
	Event string `json:"event"`
	// Made lists the created resources, including the subject of the event.
	Made []triggerResource `json:"made"`
}

type triggerResource struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

func newTriggerCommand() *cobra.Command {
	var (
		api    apiFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "trigger <event>",
		Short: "Make an event happen, for trying webhooks out",
		Long: "Makes the change that causes the event, by the API: a post, a vote, a contact, … The change is real, so the\n" +
			"event goes to every webhook that subscribes to it. The new resources have \"" + triggerName + "\" in their names and stay.\n" +
			"Posts and changelog entries go to one board. If the event needs a post, post.created is sent first.\n" +
			"If it needs a contact, contact.created is sent first.\n\nEvents: " + strings.Join(eventNames(), ", "),
		Example:           "  earshot trigger post.created\n  earshot trigger contact.updated --json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(eventNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(eventNames(), args[0]) {
				return errors.Errorf("there is no event %q; the events are %s", args[0], strings.Join(eventNames(), ", "))
			}
			client, err := api.client(os.Environ())
			if err != nil {
				return err
			}
			t := &trigger{client: client, made: []triggerResource{}}
			if err := t.cause(cmd.Context(), event.Type(args[0])); err != nil {
				return err
			}
			return t.report(cmd.OutOrStdout(), args[0], asJSON)
		},
	}
	api.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the new resources as JSON")
	return cmd
}

func (t *trigger) report(out io.Writer, name string, asJSON bool) error {
	if asJSON {
		return printJSON(out, triggerResult{Event: name, Made: t.made})
	}
	for _, r := range t.made {
		fmt.Fprintf(out, "%-8s %s\n", r.Kind, r.ID)
	}
	fmt.Fprintf(out, "%s happened\n", name)
	return nil
}

// trigger makes the changes that cause one event. After the first error it makes no more changes.
type trigger struct {
	client *apiClient
	made   []triggerResource
	err    error
}

// cause makes the change that causes the event.
func (t *trigger) cause(ctx context.Context, e event.Type) error {
	switch e {
	case event.PostCreated:
		t.post(ctx)
	case event.PostStatusChanged:
		t.change(ctx, http.MethodPatch, "/v1/posts/"+t.post(ctx), map[string]any{"status": "planned"})
	case event.VoteCreated:
		t.create(ctx, "vote", "/v1/posts/"+t.post(ctx)+"/votes", nil)
	case event.CommentCreated:
		t.create(ctx, "comment", "/v1/posts/"+t.post(ctx)+"/comments", map[string]any{"body": map[string]any{"text": titled("A comment")}})
	case event.ChangelogPublished:
		t.create(ctx, "entry", "/v1/boards/"+t.board(ctx)+"/changelog", map[string]any{
			"title": titled("An entry"), "publishedAt": "2026-01-01T00:00:00Z", // a past time publishes it immediately
		})
	case event.ContactCreated:
		t.contact(ctx)
	case event.ContactUpdated:
		t.change(ctx, http.MethodPatch, "/v1/contacts/"+t.contact(ctx), map[string]any{"plan": "pro"})
	case event.ContactDeleted:
		t.change(ctx, http.MethodDelete, "/v1/contacts/"+t.contact(ctx), nil)
	default: // an event without a case; the test walks the catalogue
		return errors.Errorf("nothing here causes %s", e)
	}
	return t.err
}

// change changes a resource.
func (t *trigger) change(ctx context.Context, method, path string, body any) {
	if t.err == nil {
		t.err = t.client.call(ctx, method, path, body, nil)
	}
}

// create makes a resource and records it under its kind.
func (t *trigger) create(ctx context.Context, kind, path string, body any) (id string) {
	if t.err != nil {
		return ""
	}
	var made struct{ ID string }
	if t.err = t.client.call(ctx, http.MethodPost, path, body, &made); t.err != nil {
		return ""
	}
	t.made = append(t.made, triggerResource{kind, made.ID})
	return made.ID
}

// board returns the shared board and creates it if necessary.
func (t *trigger) board(ctx context.Context) (id string) {
	for cursor := ""; t.err == nil; {
		var page []struct{ ID, Slug string }
		cursor, t.err = t.client.page(ctx, "/v1/boards", cursor, &page)
		for _, b := range page {
			if b.Slug == triggerSlug {
				return b.ID
			}
		}
		if cursor == "" {
			break
		}
	}
	return t.create(ctx, "board", "/v1/boards", map[string]any{"name": triggerName, "slug": triggerSlug})
}

func (t *trigger) post(ctx context.Context) (id string) {
	return t.create(ctx, "post", "/v1/boards/"+t.board(ctx)+"/posts", map[string]any{"title": titled("A post")})
}

func (t *trigger) contact(ctx context.Context) (id string) {
	return t.create(ctx, "contact", "/v1/contacts", map[string]any{
		"externalUserId": triggerSlug + "-" + rand.Text(), "name": titled("A contact"),
	})
}

// titled returns a name for a created resource.
func titled(what string) string {
	return what + " by " + triggerName + ", " + time.Now().UTC().Format(time.RFC3339)
}
