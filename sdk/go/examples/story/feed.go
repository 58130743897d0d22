package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	earshot "earshot/sdk/go"
)

// place is the file that stores the position in the feed.
type place string

func (p place) load() (*int64, error) {
	text, err := os.ReadFile(string(p)) //nolint:gosec // the file is named by who runs the program
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // from the beginning
	}
	if err != nil {
		return nil, err
	}
	sequence, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return &sequence, err
}

func (p place) save(_ context.Context, sequence int64) error {
	return os.WriteFile(string(p), []byte(strconv.FormatInt(sequence, 10)), 0o600)
}

// follow reads the feed until a post is planned. It stops before it has saved that event's position, so
// the next run begins with it.
func follow(ctx context.Context, c *earshot.Client, at place) error {
	after, err := at.load()
	if err != nil {
		return err
	}
	for event, err := range c.Events.Follow(ctx, earshot.FollowOptions{After: after, Save: at.save}) {
		if err != nil {
			return err
		}
		switch payload := event.Payload.(type) {
		case *earshot.PostStatusChangedEvent:
			fmt.Println("feed:", payload.Post.Title, "was", payload.PreviousStatus, "and is", payload.Post.Status)
			return nil
		default:
			fmt.Println("feed:", payload.EventName())
		}
	}
	return nil
}
