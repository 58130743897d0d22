package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/oapi-codegen/nullable"

	earshot "earshot/client"
)

const (
	floorIdentify  = "floor: select and update by pgx"
	floorWorkflow  = "floor: a workflow with one local activity"
	floorGroup     = "floor: the same, in groups"
	postNoWebhook  = "create a post, nobody subscribes"
	postDelivered  = "create a post until its webhook arrived"
	identifyKnown  = "identify a known contact"
	identifyTool   = "the same by the tool identify_contact"
	arrivalTimeout = time.Minute
)

func (s *stack) subjects(o options) []subject {
	all := []subject{
		{floorIdentify, "", func(ctx context.Context) (measured, error) {
			return closedLoop(ctx, o.period, o.connections/2, s.floor.identify)
		}},
		{identifyKnown, floorIdentify, func(ctx context.Context) (measured, error) {
			return closedLoop(ctx, o.period, o.connections/2, s.identify)
		}},
		// Its floor is REST: what the tools add is the ratio.
		{identifyTool, identifyKnown, func(ctx context.Context) (measured, error) {
			return closedLoop(ctx, o.period, o.connections/2, s.identifyByTool)
		}},
		{postNoWebhook, "", func(ctx context.Context) (measured, error) {
			return closedLoop(ctx, o.period, o.connections/2, s.post)
		}},
		{floorWorkflow, "", func(ctx context.Context) (measured, error) { return s.floor.workflows(ctx, o.posts, o.connections, 1) }},
		{floorGroup, "", func(ctx context.Context) (measured, error) {
			return s.floor.workflows(ctx, o.posts, o.connections, floorGroupSize)
		}},
		{postDelivered, floorWorkflow, func(ctx context.Context) (measured, error) {
			return s.delivered(ctx, o.posts, func(ctx context.Context, do func(context.Context, int) error) error {
				return burst(ctx, o.posts, o.connections, do)
			})
		}},
	}
	for _, rate := range o.rates {
		all = append(all, subject{fmt.Sprintf("%s, at %d/s", postDelivered, rate), "", func(ctx context.Context) (measured, error) {
			n := int(float64(rate) * o.period.Seconds())
			return s.delivered(ctx, n, func(ctx context.Context, do func(context.Context, int) error) error {
				return steady(ctx, rate, o.period, do)
			})
		}})
	}
	return all
}

// post makes one without a number: its slug would be taken in the next round,
// and the search for a free one isn't the subject.
func (s *stack) post(ctx context.Context, _ int) error {
	return s.createPost(ctx, "Bench "+uuid.NewString())
}

func (s *stack) createPost(ctx context.Context, title string) error {
	answer, err := s.api.CreatePostWithResponse(ctx, s.board, earshot.CreatePostRequest{Title: title})
	if err != nil {
		return errors.Wrap(err, "create a post")
	}
	if answer.JSON201 == nil {
		return errors.Errorf("create a post: %s: %s", answer.Status(), answer.Body)
	}
	return nil
}

// known is how many contacts are identified over and over.
const known = 1000

func (s *stack) identify(ctx context.Context, i int) error {
	id, name, email := fmt.Sprintf("bench-%d", i%known), "Bench", fmt.Sprintf("bench-%d@example.com", i%known)
	answer, err := s.api.IdentifyContactWithResponse(ctx, earshot.IdentifyContactRequest{
		ExternalUserID: id,
		ContactTraits: earshot.ContactTraits{
			Name: nullable.NewNullableWithValue(name), Email: nullable.NewNullableWithValue(email),
		},
	})
	if err != nil {
		return errors.Wrap(err, "identify")
	}
	if answer.JSON200 == nil && answer.JSON201 == nil {
		return errors.Errorf("identify: %s: %s", answer.Status(), answer.Body)
	}
	return nil
}

// delivered measures from the start of the REST call to the arrival of the
// webhook, over n posts that load makes.
func (s *stack) delivered(ctx context.Context, n int,
	load func(ctx context.Context, do func(context.Context, int) error) error,
) (measured, error) {
	remove, err := s.register(ctx, s.receiver.url, "post.created")
	if err != nil {
		return measured{}, err
	}
	defer remove()
	arrived := s.receiver.expect(n)
	cpu, began := startCPU(), time.Now()
	err = load(ctx, func(ctx context.Context, i int) error {
		s.receiver.begin(i)
		return s.createPost(ctx, s.receiver.title(i))
	})
	if err != nil {
		return measured{}, err
	}
	select {
	case <-arrived:
	case <-ctx.Done():
		return measured{}, ctx.Err()
	case <-time.After(arrivalTimeout):
		return measured{}, errors.Errorf("only %d of %d webhooks arrived", s.receiver.count(), n)
	}
	took := time.Since(began)
	times := s.receiver.times()
	m := measured{
		PerSecond: float64(n) / took.Seconds(),
		P50:       times.quantile(0.5), P99: times.quantile(0.99), CPU: cpu.perOperation(n),
	}
	// Those of the webhook, which is removed with its deliveries.
	err = s.pool.QueryRow(ctx, `SELECT count(DISTINCT workflow_id) FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
		WHERE w.organization_id = $1`, s.organization.UUID().String()).Scan(&m.workflows)
	if err != nil {
		return measured{}, errors.Wrap(err, "count the workflows")
	}
	return m, nil
}

// register makes a webhook and returns what removes it.
func (t tenant) register(ctx context.Context, url string, event earshot.EventType) (remove func(), err error) {
	made, err := t.api.CreateWebhookWithResponse(ctx, earshot.CreateWebhookRequest{
		URL: url, Events: []earshot.EventType{event},
	})
	if err != nil {
		return nil, errors.Wrap(err, "register the webhook")
	}
	if made.JSON201 == nil {
		return nil, errors.Errorf("register the webhook: %s: %s", made.Status(), made.Body)
	}
	return func() {
		_, _ = t.api.DeleteWebhookWithResponse(context.WithoutCancel(ctx), made.JSON201.Data.ID)
	}, nil
}
