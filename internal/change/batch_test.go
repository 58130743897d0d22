package change_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/delivery"
	"earshot/ent/db/user"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// batches has a batch that makes boards. The name of a board decides its fate.
type batches struct {
	change.Batch[string, publicid.Board]
	store        *postgres.DB
	runner       *change.Runner
	organization publicid.Organization
	// sizes are the numbers of inputs of the transactions so far, negative for one that waits.
	sizes []int
	mu    sync.Mutex
	// delivered are the deliveries that were dispatched.
	change.Dispatcher
	delivered []change.PendingDelivery
	// blocked receives when a batch with the board "blocked" begins. The batch goes on when a value can be read
	// from released.
	blocked, released chan struct{}
}

func (b *batches) Deliver(all []change.PendingDelivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.delivered = append(b.delivered, all...)
}

func newBatches(t *testing.T, s *postgres.DB) (*batches, context.Context) {
	t.Helper()
	b, box := &batches{store: s}, seal.New()
	require.NoError(t, box.Add("test", make([]byte, 32)))
	runner := change.NewRunner(s, b, box, change.Settings{})
	org := s.Client().Organization.Create().SetName("Acme").SaveX(s.Across("a test").Context(t.Context()))
	owner := s.Client().User.Create().SetEmail("owner@example.com").SetName("Olive Owner").SetRole(user.RoleOwner).
		SaveX(postgres.WithOrganization(t.Context(), org.ID))
	b.runner, b.organization = runner, org.ID
	b.Batch = change.NewBatch(runner, change.Write[string, publicid.Board]{
		Apply: b.apply, SkipsHeld: true, Alone: func(name string) bool { return strings.HasPrefix(name, "large") },
	})
	return b, change.WithCaller(t.Context(), &change.Caller{Organization: org, User: owner})
}

func (b *batches) apply(ctx context.Context, c *change.Change, names []string) ([]change.Result[publicid.Board], error) {
	size := len(names)
	if c.Waits {
		size = -size
	}
	b.mu.Lock()
	b.sizes = append(b.sizes, size)
	b.mu.Unlock()
	out := make([]change.Result[publicid.Board], len(names))
	var rows []*db.BoardCreate
	for i, name := range names {
		kind, _, _ := strings.Cut(name, " ")
		switch {
		case kind == "panics":
			panic("a bug")
		case kind == "blocked":
			b.blocked <- struct{}{}
			<-b.released
		case kind == "refused":
			out[i].Err = problem.Missing("board")
			continue
		case kind == "held" && !c.Waits:
			out[i].Err = change.ErrHeld
			continue
		case kind == "moved" && len(names) > 1:
			out[i].Err = postgres.ErrAgain
			continue
		}
		id := publicid.NewBoard()
		out[i].Out = id
		out[i].Events = []change.Event{{Type: event.PostCreated, At: postgres.Now(), Payload: &event.PostCreatedPayload{
			BoardHead: event.BoardHead{BoardID: id}, Post: event.Post{ID: publicid.NewPost(), Title: name},
		}}}
		rows = append(rows, c.Board.Create().SetID(id).SetName(name).SetSlug(kind))
	}
	if rows == nil {
		return out, nil
	}
	return out, c.Board.CreateBulk(rows...).Exec(ctx)
}

// names returns the boards that exist, in the order of their creation.
func (b *batches) names(ctx context.Context, t *testing.T) (names []string) {
	t.Helper()
	for _, row := range b.store.Client().Board.Query().Order(db.Asc("name")).AllX(ctx) {
		require.Equal(t, change.CallerOf(ctx).Organization.ID, row.OrganizationID)
		names = append(names, row.Name)
	}
	return names
}

func (b *batches) listen(ctx context.Context) {
	b.store.Client().Webhook.Create().SetURL("https://hooks.example.com").SetSecretSealed([]byte("sealed")).
		SetEvents([]string{string(event.PostCreated)}).ExecX(ctx)
}

// keyed returns a request with an idempotency key of this test, and with the board's id as its answer.
func (b *batches) keyed(key byte) change.Request[publicid.Board] {
	id := sha256.Sum256(fmt.Append(nil, b.organization, key)) // as in package api, because its first bytes are the lock
	return change.Request[publicid.Board]{Key: &change.Key{ID: id}, Answer: func(id publicid.Board) (change.Answer, error) {
		return change.Answer{Status: 201, Body: []byte(id.String())}, nil
	}}
}

func TestABatchWritesItsInputsAndTheirEventsInOneTransaction(t *testing.T) {
	t.Parallel()
	b, ctx := newBatches(t, testkit.SharedStore(t))
	b.listen(ctx)
	out, errs := change.DoTogether(ctx, b.Batch, []string{"a", "b", "c"}, nil)
	require.Equal(t, make([]error, 3), errs)
	require.Len(t, out, 3)
	require.Equal(t, []string{"a", "b", "c"}, b.names(ctx, t))
	require.Equal(t, []int{3}, b.sizes)
	require.Len(t, b.delivered, 3)
	for i, e := range b.store.Client().Event.Query().Order(db.Asc("sequence")).AllX(ctx) {
		require.Contains(t, string(e.Payload), out[i].String(), "in the order of the inputs")
	}
}

func TestAnInputThatCannotShareATransactionCostsItsNeighboursNothing(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]struct {
		sizes []int
		err   string
	}{
		"refused": {[]int{3}, "no such board"},
		"held":    {[]int{3, -1}, ""},
		"moved":   {[]int{3, -1}, ""},
		"large":   {[]int{2, -1}, ""},
		// The slug is taken, so the database ends the transaction.
		"taken": {[]int{3, -1, -1, -1}, "board_organization_id_slug"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b, ctx := newBatches(t, testkit.SharedStore(t))
			b.store.Client().Board.Create().SetName("taken before").SetSlug("taken").ExecX(ctx)
			out, errs := change.DoTogether(ctx, b.Batch, []string{"a", kind, "z"}, nil)
			made := []string{"a"}
			if want.err == "" {
				require.NoError(t, errs[1])
				require.False(t, out[1].IsZero())
				made = append(made, kind)
			} else {
				require.ErrorContains(t, errs[1], want.err)
			}
			require.Equal(t, []error{nil, nil}, []error{errs[0], errs[2]})
			require.Equal(t, append(made, "taken before", "z"), b.names(ctx, t))
			require.Equal(t, want.sizes, b.sizes)
		})
	}
}

func TestASingleRequestDoesNotWaitForAnImport(t *testing.T) {
	t.Parallel()
	b, ctx := newBatches(t, testkit.SharedStore(t))
	b.blocked, b.released = make(chan struct{}), make(chan struct{})
	var imported sync.WaitGroup
	imported.Go(func() {
		for _, r := range b.DoAll(ctx, []string{"blocked", "imported"}) {
			assert.NoError(t, r.Err)
		}
	})
	<-b.blocked
	_, err := b.Do(ctx, "single", change.Request[publicid.Board]{})
	during := b.names(ctx, t)
	close(b.released)
	imported.Wait()
	require.NoError(t, err)
	require.Equal(t, []string{"single"}, during)
	require.Equal(t, []string{"blocked", "imported", "single"}, b.names(ctx, t))
}

func TestAPanicInABatchReachesOnlyItsCaller(t *testing.T) {
	t.Parallel()
	b, ctx := newBatches(t, testkit.SharedStore(t))
	for range 30 { // more than an organization's transaction slots
		require.PanicsWithValue(t, "a bug", func() { _, _ = b.Do(ctx, "panics", b.keyed(1)) })
	}
	require.Panics(t, func() { _, _ = change.DoTogether(ctx, b.Batch, []string{"a", "panics"}, nil) })
	require.Equal(t, []string{"a"}, b.names(ctx, t))
	_, err := b.Do(ctx, "b", b.keyed(1))
	require.NoError(t, err, "the key is free again, and there is a transaction")
}

func TestABatchOfRefusedInputsChangesNothing(t *testing.T) {
	t.Parallel()
	b, ctx := newBatches(t, testkit.SharedStore(t))
	request := b.keyed(1)
	_, errs := change.DoTogether(ctx, b.Batch, []string{"refused", "refused"}, []change.Request[publicid.Board]{request, {}})
	require.True(t, problem.Is(errs[0], problem.NotFound) && problem.Is(errs[1], problem.NotFound))
	_, err := b.Do(ctx, "a", request)
	require.NoError(t, err, "the key has no record")
}

func TestAKeyTakesEffectOnceAndCostsItsNeighboursNothing(t *testing.T) {
	t.Parallel()
	b, ctx := newBatches(t, testkit.SharedStore(t))
	first, err := b.Do(ctx, "a", b.keyed(1))
	require.NoError(t, err)
	other := b.keyed(2)
	other.Key.Fingerprint[0] = 1
	_, err = b.Do(ctx, "b", other)
	require.NoError(t, err)
	_, errs := change.DoTogether(ctx, b.Batch, []string{"again", "with another body", "c", "c twice", "d"},
		[]change.Request[publicid.Board]{b.keyed(1), b.keyed(2), b.keyed(3), b.keyed(3), {}})
	var before *change.ReplayedError
	require.ErrorAs(t, errs[0], &before)
	require.Equal(t, change.Answer{Status: 201, Body: []byte(first.String())}, before.Answer)
	require.True(t, problem.Is(errs[1], problem.IdempotencyMismatch), "%v", errs[1])
	require.NoError(t, errs[2])
	require.True(t, problem.Is(errs[3], problem.IdempotencyInProgress), "%v", errs[3])
	require.NoError(t, errs[4])
	require.Equal(t, []string{"a", "b", "c", "d"}, b.names(ctx, t))
}

func TestAnAnswerThatCannotBeEncodedFailsItsCallerOnly(t *testing.T) {
	t.Parallel()
	b, ctx := newBatches(t, testkit.SharedStore(t))
	broken := b.keyed(1)
	broken.Answer = func(publicid.Board) (change.Answer, error) { return change.Answer{}, errors.New("no JSON") }
	_, errs := change.DoTogether(ctx, b.Batch, []string{"a", "b"}, []change.Request[publicid.Board]{broken, b.keyed(2)})
	require.ErrorContains(t, errs[0], "no JSON")
	require.NoError(t, errs[1])
	require.Equal(t, []string{"b"}, b.names(ctx, t))
}

// The events are sent with the commit. If the answer gets lost, nobody knows their deliveries, and the
// sweep starts them.
func TestACommitThatIsNotAnsweredFailsForAllAndIsNotRepeated(t *testing.T) {
	t.Parallel()
	link, url := testkit.NewLink(t, testkit.Database(t))
	s, err := postgres.Open(postgres.Options{URL: url})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	b, ctx := newBatches(t, s)
	b.listen(ctx)
	link.LoseCommit()
	_, errs := change.DoTogether(ctx, b.Batch, []string{"a", "b"}, nil)
	require.True(t, postgres.Unknown(errs[0]) && postgres.Unknown(errs[1]), "%v", errs)
	require.Equal(t, []int{2}, b.sizes, "nothing is repeated")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.Equal(c, []string{"a", "b"}, b.names(ctx, t), "both are committed")
		require.Equal(c, 2, s.Client().Delivery.Query().Where(delivery.StatusEQ(delivery.StatusPending)).CountX(ctx))
	}, testkit.Wait, 10*time.Millisecond)
}
