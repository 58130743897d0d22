package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	earshot "earshot/sdk/go"
)

// receiver is a webhook and its HTTP server.
type receiver struct {
	webhook *earshot.WebhookWithSecret
	server  *http.Server
	arrived chan string // the ids of deliveries
}

// listen registers a webhook for a local address and serves it.
func listen(ctx context.Context, c *earshot.Client) (*receiver, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{arrived: make(chan string, 100)}
	r.webhook, err = c.Webhooks.Create(ctx, earshot.CreateWebhookRequest{
		URL: "http://" + l.Addr().String(), Events: []earshot.EventType{earshot.EventTypePostCreated, earshot.EventTypePostStatusChanged},
	})
	if err != nil {
		return nil, err
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(l) }()
	return r, nil
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, 8<<20))
	if err != nil {
		return
	}
	event, err := earshot.Unwrap(body, request.Header, r.webhook.Secret)
	if err != nil {
		http.Error(w, "not genuine", http.StatusBadRequest)
		return
	}
	switch e := event.(type) {
	case *earshot.PostCreatedEvent:
		fmt.Println("webhook: new post", e.Post.Title)
	case *earshot.PostStatusChangedEvent:
		fmt.Println("webhook:", e.Post.Title, "is", e.Post.Status)
	}
	w.WriteHeader(http.StatusNoContent)
	r.arrived <- request.Header.Get("X-Service-Delivery")
}

// end waits for a number of deliveries, each of which may arrive more than once. Then it deletes the webhook.
func (r *receiver) end(ctx context.Context, c *earshot.Client, deliveries int) error {
	for seen := map[string]bool{}; len(seen) < deliveries; {
		select {
		case id := <-r.arrived:
			seen[id] = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if _, err := c.Webhooks.Delete(ctx, r.webhook.ID); err != nil {
		return err
	}
	return r.server.Shutdown(ctx)
}
