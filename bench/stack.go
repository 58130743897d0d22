package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	earshot "earshot/client"
	"earshot/ent/db"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// stack is what `make up` runs, with an organization for the load.
type stack struct {
	tenant
	pool     *pgxpool.Pool
	temporal client.Client
	receiver *receiver
	floor    *floor
	// others are made for one measurement, and removed with the rest.
	others []publicid.Organization
}

// tenant is an organization with a key that knows no limit, and a board.
type tenant struct {
	organization publicid.Organization
	api          *earshot.ClientWithResponses
	key          string
	http         *http.Client
	board        string
}

// maxConns of our own pool: the most that a floor uses at once, and some.
const maxConns = 40

func open(ctx context.Context) (*stack, error) {
	for _, name := range []string{"EARSHOT_BASE_URL", "DATABASE_URL", "TEMPORAL_ADDRESS"} {
		if os.Getenv(name) == "" {
			return nil, errors.Errorf("%s is missing: run `make up` and then `make bench`, which reads .earshot/dev.env", name)
		}
	}
	s := &stack{}
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		return nil, errors.Wrap(err, "read DATABASE_URL")
	}
	config.MaxConns = maxConns
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, errors.Wrap(err, "open the database")
	}
	o, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return nil, errors.Wrap(err, "read Temporal's settings")
	}
	o.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	if s.temporal, err = client.DialContext(ctx, o); err != nil {
		return nil, errors.Wrap(err, "reach Temporal")
	}
	if s.tenant, err = s.makeTenant(ctx); err != nil {
		return nil, errors.Wrap(err, "make the organization of the load")
	}
	if s.floor, err = newFloor(ctx, s.pool, s.temporal); err != nil {
		return nil, err
	}
	s.receiver = newReceiver()
	return s, nil
}

func (s *stack) makeTenant(ctx context.Context) (t tenant, err error) {
	own, err := store.Open(store.Options{URL: os.Getenv("DATABASE_URL")})
	if err != nil {
		return t, err
	}
	defer own.Close()
	keys := access.New(own, change.NewRunner(own, nil), slog.Default())
	org, owner, err := keys.CreateOrganization(ctx, access.NewOrganization{
		Name: "bench", Plan: "business", OwnerEmail: "bench@example.com", OwnerName: "Bench",
	})
	if err != nil {
		return t, err
	}
	t.organization = org.ID
	key, made, err := keys.CreateAPIKey(store.WithOrganization(ctx, org.ID),
		access.NewAPIKey{User: owner.ID, Name: "bench", Scope: "read:write"})
	if err != nil {
		return t, err
	}
	if err := s.liftRateLimit(ctx, made); err != nil {
		return t, err
	}
	return t, t.connect(ctx, key)
}

// connect makes the client of the key, and the board.
func (t *tenant) connect(ctx context.Context, key string) (err error) {
	t.key = key
	t.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}, Timeout: time.Minute}
	t.api, err = earshot.NewClientWithResponses(os.Getenv("EARSHOT_BASE_URL"),
		earshot.WithHTTPClient(t.http),
		earshot.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+key)
			return nil
		}))
	if err != nil {
		return errors.Wrap(err, "make the client")
	}
	board, err := t.api.CreateBoardWithResponse(ctx, earshot.CreateBoardRequest{Name: "Bench"})
	if err != nil {
		return errors.Wrap(err, "create the board")
	}
	if board.JSON200 == nil {
		return errors.Errorf("create the board: %s: %s", board.Status(), board.Body)
	}
	t.board = board.JSON200.Data.ID
	return nil
}

// liftRateLimit gives the key a budget of its own: the limit isn't the subject.
func (s *stack) liftRateLimit(ctx context.Context, key *db.APIKey) error {
	_, err := s.pool.Exec(ctx, "UPDATE api_keys SET rate_limit = 10000000 WHERE id = $1", key.ID.UUID().String())
	if err != nil {
		return errors.Wrap(err, "lift the rate limit")
	}
	return nil
}

// owned are the tables of an organization, children first.
var owned = []string{
	"attempts", "deliveries", "events", "webhooks", "votes", "comments", "post_tags", "posts",
	"contacts", "tags", "boards", "api_keys", "users",
}

func (s *stack) close() error {
	// The load may have been ended by a signal; the tidying up must not be.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.receiver.close()
	s.floor.close(ctx)
	s.temporal.Close()
	defer s.pool.Close()
	for _, organization := range append(s.others, s.organization) {
		if err := s.remove(ctx, organization); err != nil {
			return err
		}
	}
	return nil
}

func (s *stack) remove(ctx context.Context, organization publicid.Organization) error {
	for _, table := range owned {
		sql := fmt.Sprintf("DELETE FROM %s WHERE organization_id = $1", table)
		if _, err := s.pool.Exec(ctx, sql, organization.UUID().String()); err != nil {
			return errors.Wrapf(err, "remove the load's %s", table)
		}
	}
	_, err := s.pool.Exec(ctx, "DELETE FROM organizations WHERE id = $1", organization.UUID().String())
	if err != nil {
		return errors.Wrap(err, "remove the load's organization")
	}
	return nil
}
