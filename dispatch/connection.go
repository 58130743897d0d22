package dispatch

import (
	"context"
	"sync"

	"github.com/go-faster/errors"
	"go.temporal.io/sdk/client"
)

// Connection holds the one Temporal client of a process. Temporal may be down when the process
// starts. It replaces the SDK's lazy client, whose first calls have a data race when they start
// workflows eagerly.
type Connection struct {
	options client.Options
	// dialing has one slot, so that one goroutine dials at a time.
	dialing chan struct{}

	mu     sync.Mutex
	client client.Client
}

// NewConnection returns a connection that dials on the first call of Client.
func NewConnection(o client.Options) *Connection {
	return &Connection{options: o, dialing: make(chan struct{}, 1)}
}

// Namespace returns the namespace of the client.
func (c *Connection) Namespace() string {
	if c.options.Namespace == "" {
		return client.DefaultNamespace
	}
	return c.options.Namespace
}

// Client returns the client. It dials until one call has succeeded. An error means that Temporal
// does not answer.
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

// Close closes the client, if there is one.
func (c *Connection) Close() {
	if known := c.known(); known != nil {
		known.Close()
	}
}
