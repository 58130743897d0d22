package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"earshot/bench/seeding"
	"earshot/ent/db"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	earshot "earshot/sdk/go"
)

// addresses are the addresses of the stack.
type addresses struct{ api, database, temporal string }

func addressesFromEnv() (at addresses, err error) {
	for name, into := range map[string]*string{
		"EARSHOT_BASE_URL": &at.api, "DATABASE_URL": &at.database, "TEMPORAL_ADDRESS": &at.temporal,
	} {
		if *into = os.Getenv(name); *into == "" {
			return at, errors.Errorf("%s is missing: run `make up` and then `make bench`, which reads .earshot/dev.env", name)
		}
	}
	return at, nil
}

// stack is the stack of `make up`, with an organization for the load.
type stack struct {
	tenant
	at       addresses
	pool     *pgxpool.Pool
	temporal client.Client
	meters   *meters
	receiver *receiver
	floor    *floor
	rows     *floorRows
	// seeded is nil until a run needs the seeded organization.
	seeded *seeded
	// others are the organizations of this run. close removes them.
	others []publicid.Organization
}

// tenant is an organization with a board and a key without a practical rate limit.
type tenant struct {
	organization publicid.Organization
	owner        publicid.User
	base         string
	// api sends no idempotency keys, and keyed sends one with every write.
	api, keyed *earshot.Client
	key        string
	http       *http.Client
	board      string
}

// maxConns is the size of bench's own pool: slightly more than a floor uses at the same time.
const maxConns = 40

func open(ctx context.Context, at addresses) (s *stack, err error) {
	s = &stack{at: at}
	config, err := pgxpool.ParseConfig(at.database)
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
	o.HostPort = at.temporal
	o.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	if s.temporal, err = client.DialContext(ctx, o); err != nil {
		return nil, errors.Wrap(err, "reach Temporal")
	}
	if s.meters, err = openMeters(ctx, at); err != nil {
		return nil, err
	}
	if missing := s.meters.missing(); missing != "" {
		fmt.Fprintln(os.Stderr, "bench: nobody whom we may look at listens there on this machine, so there is no processor time of", missing)
	}
	if s.tenant, err = s.makeTenant(ctx); err != nil {
		return nil, errors.Wrap(err, "make the organization of the load")
	}
	s.receiver = newReceiver()
	if s.floor, err = newFloor(ctx, s.pool, s.temporal); err != nil {
		return nil, err
	}
	if s.rows, err = s.newFloorRows(ctx); err != nil {
		return nil, errors.Wrap(err, "make the organization of the floors")
	}
	return s, nil
}

// withAccess calls fn with the access service on the stack's database.
func (s *stack) withAccess(fn func(keys *access.Service) error) error {
	own, err := postgres.Open(postgres.Options{URL: s.at.database})
	if err != nil {
		return err
	}
	defer own.Close()
	return fn(access.New(own, change.NewRunner(own, nil, nil, change.Settings{}), slog.Default()))
}

// makeTenant makes a new organization. close removes it.
func (s *stack) makeTenant(ctx context.Context) (t tenant, err error) {
	err = s.withAccess(func(keys *access.Service) error {
		org, owner, err := keys.CreateOrganization(ctx, access.NewOrganization{
			Name: "bench", Plan: "business", OwnerEmail: "bench@example.com", OwnerName: "Bench",
		})
		if err != nil {
			return err
		}
		s.others = append(s.others, org.ID)
		t, err = s.enter(ctx, keys, org.ID, owner.ID)
		return err
	})
	if err != nil {
		return t, err
	}
	t.board, err = t.newBoard(ctx)
	return t, err
}

// enter makes a key for a member, and a client with that key.
func (s *stack) enter(ctx context.Context, keys *access.Service, org publicid.Organization, as publicid.User) (t tenant, err error) {
	key, made, err := keys.CreateAPIKey(postgres.WithOrganization(ctx, org),
		access.NewAPIKey{User: as, Name: "bench", Scope: "read:write"})
	if err != nil {
		return t, err
	}
	if err := s.liftRateLimit(ctx, made); err != nil {
		return t, err
	}
	t = tenant{organization: org, owner: as, base: s.at.api, key: key}
	t.http = newHTTPClient()
	if t.api, err = newClient(t.base, key, keyless{t.http.Transport}); err != nil {
		return t, err
	}
	t.keyed, err = newClient(t.base, key, t.http.Transport)
	return t, err
}

// newClient makes a client without retries, because a retry would hide a failure in the latencies.
func newClient(base, key string, over http.RoundTripper) (*earshot.Client, error) {
	c, err := earshot.New(earshot.Options{
		APIKey: key, BaseURL: base, Timeout: time.Minute, MaxRetries: earshot.Ptr(0), HTTPClient: &http.Client{Transport: over},
	})
	if err != nil {
		return nil, errors.Wrap(err, "make the client")
	}
	return c, nil
}

// keyless removes the Idempotency-Key, so that the measurement covers the change without the record
// of its key.
type keyless struct{ http.RoundTripper }

func (k keyless) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del("Idempotency-Key")
	return k.RoundTripper.RoundTrip(r)
}

func newHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}, Timeout: time.Minute}
}

// newBoard makes a board for the posts of a single run.
func (t *tenant) newBoard(ctx context.Context) (id string, err error) {
	board, err := t.api.Boards.Create(ctx, earshot.CreateBoardRequest{Name: "Bench"})
	if err != nil {
		return "", errors.Wrap(err, "create the board")
	}
	return board.ID, nil
}

// unlimited is a rate limit that no load reaches, because the limit isn't part of the measurement.
const unlimited = 10_000_000

func (s *stack) liftRateLimit(ctx context.Context, key *db.APIKey) error {
	_, err := s.pool.Exec(ctx, "UPDATE api_keys SET rate_limit = $2 WHERE id = $1", key.ID.UUID().String(), unlimited)
	if err != nil {
		return errors.Wrap(err, "lift the rate limit")
	}
	return nil
}

func (s *stack) close() error {
	// A signal may have cancelled the load. The cleanup still has to run.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s.receiver.close()
	s.floor.close(ctx)
	s.temporal.Close()
	defer s.pool.Close()
	if s.seeded != nil {
		if err := s.tidySeeded(ctx); err != nil {
			return err
		}
	}
	ids := make([][16]byte, len(s.others))
	for i, organization := range s.others {
		ids[i] = organization.UUID()
	}
	if err := seeding.RemoveOrganizations(ctx, s.at.database, io.Discard, ids...); err != nil {
		return errors.Wrap(err, "remove the organizations of the load")
	}
	return nil
}
