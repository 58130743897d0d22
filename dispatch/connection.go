package dispatch

import (
	"context"
	"sync"

	"github.com/go-faster/errors"
	"go.temporal.io/sdk/client"
)

// Connection is the one client of a process, of a Temporal that may be away when
// the process starts. The SDK's own lazy client has a data race between its first
// calls when they start workflows eagerly.
type Connection struct {
	options client.Options
	// dialing has one place, for who dials.
	dialing chan struct{}

	mu     sync.Mutex
	client client.Client
}

// NewConnection doesn't connect yet.
func NewConnection(o client.Options) *Connection {
	return &Connection{options: o, dialing: make(chan struct{}, 1)}
}

// Namespace is the one that the client works in.
func (c *Connection) Namespace() string {
	if c.options.Namespace == "" {
		return client.DefaultNamespace
	}
	return c.options.Namespace
}

// Client returns the client, which connects at the first call that succeeds. An
// error says that Temporal doesn't answer.
func (c *Connection) Client(ctx context.Context) (client.Client, error) {
	if known := c.known(); known != nil {
		return known, nil
	}
	select {
	case c.dialing <- struct{}{}:
		defer func() { <-c.dialing }()
	case <-ctx.Done():
		return nil, errors.Wrap(ctx.Err(), "wait for Temporal")
	}
	if known := c.known(); known != nil {
		return known, nil
	}
	fresh, err := client.DialContext(ctx, c.options)
	if err != nil {
		return nil, errors.Wrap(err, "reach Temporal")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.client = fresh
	return fresh, nil
}

func (c *Connection) known() client.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client
}

// Close gives the connection back, if there is one.
func (c *Connection) Close() {
	if known := c.known(); known != nil {
		known.Close()
	}
}
