package ratelimit_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/ratelimit"
	"earshot/internal/testkit"
)

// replica stands for a process with its rate limits.
type replica struct {
	*ratelimit.Keys
	statements *statements
}

// newReplica makes a replica with its own connection pool and 600 requests a minute for each key.
func newReplica(t testing.TB, database string) replica {
	t.Helper()
	counted := &statements{}
	s, err := postgres.Open(postgres.Options{URL: database, MaxConns: 4, Tracer: counted})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return replica{ratelimit.NewKeys(s, 600), counted}
}

// statements counts statements.
type statements struct {
	mu sync.Mutex
	n  int
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return ctx
}

func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *statements) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// spent counts the requests that passed, were decided alone, and were refused. On a busy machine
// the database may not answer in time, and the process then decides alone.
type spent struct{ passed, alone, refused int }

func (s *spent) note(l ratelimit.Decision) {
	switch {
	case !l.OK:
		s.refused++
	case l.Alone != nil:
		s.alone++
		fallthrough
	default:
		s.passed++
	}
}

// spend makes requests in sequence until one is refused.
func spend(t *testing.T, r replica, key publicid.APIKey, own *int) (s spent) {
	t.Helper()
	for s.refused == 0 {
		s.note(r.Take(key, own))
		require.Less(t, s.passed, 100_000)
	}
	return s
}

// refill returns the largest number of tokens that flow into a bucket after since.
func refill(perMinute int, since time.Time) int {
	return int(time.Since(since).Seconds()*float64(perMinute)/60) + 1
}

func TestReplicasShareABudgetUnderConcurrentRequests(t *testing.T) {
	t.Parallel()
	database, key, began := testkit.SharedDatabase(t), publicid.NewAPIKey(), time.Now()
	const limit, replicas, callers = 600, 3, 16
	var (
		mu    sync.Mutex
		total spent
		all   sync.WaitGroup
	)
	for range replicas {
		r := newReplica(t, database)
		for range callers {
			all.Go(func() {
				for range 60 {
					answer := r.Take(key, nil)
					mu.Lock()
					total.note(answer)
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	t.Logf("%+v of %d requests in %v", total, replicas*callers*60, time.Since(began))
	const lease = limit / 60
	require.LessOrEqual(t, total.passed, limit+refill(limit, began)+replicas*lease+total.alone)
	require.GreaterOrEqual(t, total.passed, limit-replicas*lease)
	require.Positive(t, total.refused)
}

func TestAProcessThatStopsGivesItsLeasedTokensBack(t *testing.T) {
	t.Parallel()
	database, key := testkit.Database(t), publicid.NewAPIKey()
	r := newReplica(t, database)
	c, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { _ = c.Close(context.Background()) }()
	// A bucket of 600 a minute is full 0.1 s later for each token that is missing.
	const perToken = 100 * time.Millisecond
	settled := func() (fullAt time.Time) {
		require.NoError(t, r.GiveBack(t.Context()))
		require.NoError(t, c.QueryRow(t.Context(), "SELECT full_at FROM token_buckets WHERE bucket_id = $1", key.UUID().String()).Scan(&fullAt))
		return fullAt
	}
	for range 100 {
		require.True(t, r.Take(key, nil).OK)
	}
	first := settled()
	for range 100 {
		require.True(t, r.Take(key, nil).OK)
	}
	require.Equal(t, 100*perToken, settled().Sub(first).Round(time.Millisecond))
}

func TestABudgetUnderSixtyAMinuteIsExactOverReplicas(t *testing.T) {
	t.Parallel()
	database, key := testkit.SharedDatabase(t), publicid.NewAPIKey()
	replicas := []replica{newReplica(t, database), newReplica(t, database), newReplica(t, database)}
	own, began := 5, time.Now()
	var total spent
	for i := 0; i < 5; i++ {
		answer := replicas[i%3].Take(key, &own)
		total.note(answer)
		require.True(t, answer.OK)
		if total.alone == 0 {
			require.InDelta(t, 4-i, answer.Left, float64(refill(own, began)))
		}
	}
	for _, r := range replicas {
		total.note(r.Take(key, &own))
	}
	require.LessOrEqual(t, total.passed, own+refill(own, began)-1+total.alone)
}

func TestALoneReplicaPassesTheWholeBudgetWithFewStatements(t *testing.T) {
	t.Parallel()
	r, key := newReplica(t, testkit.SharedDatabase(t)), publicid.NewAPIKey()
	s := spend(t, r, key, nil)
	require.GreaterOrEqual(t, s.passed, 600)
	require.Less(t, r.statements.count(), s.passed/3)
	before := r.statements.count()
	for range 10_000 {
		s.note(r.Take(key, nil))
	}
	require.Less(t, r.statements.count()-before, s.refused/10, "who is refused asks for little, too")
}

func TestAReplicaThatIsKilledTakesASecondsWorthWithIt(t *testing.T) {
	t.Parallel()
	database, key := testkit.SharedDatabase(t), publicid.NewAPIKey()
	killed, next := newReplica(t, database), newReplica(t, database)
	for range 100 {
		require.True(t, killed.Take(key, nil).OK)
	}
	require.GreaterOrEqual(t, spend(t, next, key, nil).passed, 600-100-600/60)
}

func TestALimitThatIsChangedCountsAtOnce(t *testing.T) {
	t.Parallel()
	r, key := newReplica(t, testkit.SharedDatabase(t)), publicid.NewAPIKey()
	less, more := 2, 1000
	spend(t, r, key, &less)
	require.Eventually(t, func() bool {
		answer := r.Take(key, &more)
		return answer.OK && answer.PerMinute == 1000
	}, testkit.Wait, time.Millisecond, "the next token is there sixty milliseconds later and not half a minute")
	spend(t, r, key, &more)
	require.False(t, r.Take(key, &less).OK)
}

func TestRequestsAreDecidedWithoutTheDatabaseWhileItStandsStillAndChargedAfterwards(t *testing.T) {
	t.Parallel()
	database, key := testkit.Database(t), publicid.NewAPIKey()
	r, other, own := newReplica(t, database), newReplica(t, database), 4
	require.True(t, r.Take(key, &own).OK)

	c, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	held, err := c.Begin(t.Context())
	require.NoError(t, err)
	_, err = held.Exec(t.Context(), "LOCK TABLE token_buckets IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	for range 3 {
		answer := r.Take(key, &own)
		require.True(t, answer.OK && answer.Alone != nil, "it knows of three that are left")
	}
	answer := r.Take(key, &own)
	require.True(t, !answer.OK && answer.Alone != nil)
	require.NoError(t, held.Rollback(t.Context()))

	// One of the four tokens a quarter of a minute.
	require.Eventually(t, func() bool { return r.Take(key, &own).Alone == nil }, testkit.Wait, time.Millisecond)
	answer = other.Take(key, &own)
	require.False(t, answer.OK && answer.Alone == nil, "what was spent meanwhile is missing everywhere")
}

func TestRequestsAreDecidedWithoutADatabase(t *testing.T) {
	t.Parallel()
	s, err := postgres.Open(postgres.Options{URL: "postgres://nobody@127.0.0.1:1/none"})
	require.NoError(t, err)
	defer s.Close()
	r := replica{Keys: ratelimit.NewKeys(s, 5)}
	total := spend(t, r, publicid.NewAPIKey(), nil)
	require.GreaterOrEqual(t, total.passed, 5)
	require.Equal(t, total.passed, total.alone)
}
