package ratelimit_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/ratelimit"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// takeTokens takes tokens of one key.
func takeTokens(t *testing.T, s *postgres.DB, a ratelimit.TokenAsk) ratelimit.TokenGrant {
	t.Helper()
	grants, err := ratelimit.TakeTokens(t.Context(), s, []ratelimit.TokenAsk{a})
	require.NoError(t, err)
	require.Len(t, grants, 1)
	return grants[0]
}

func TestABucketGrantsNoMoreTokensThanItHolds(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	// With one token a minute, the second ask comes before the next token.
	for _, perMinute := range []int{1, 7, 600, 99_999} {
		key, began := publicid.NewAPIKey(), time.Now()
		g := takeTokens(t, s, ratelimit.TokenAsk{Key: key, PerMinute: perMinute, Needed: perMinute + 100})
		require.Equal(t, perMinute, g.Granted)
		require.InDelta(t, perMinute, g.Missing, 0.01)
		g = takeTokens(t, s, ratelimit.TokenAsk{Key: key, PerMinute: perMinute, Needed: perMinute})
		require.LessOrEqual(t, g.Granted, refill(perMinute, began))
	}
}

func TestABucketFillsByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	s, key := testkit.SharedStore(t), publicid.NewAPIKey()
	for _, full := range []struct {
		at               string
		granted, missing float64
	}{
		{"clock_timestamp() + interval '30 minutes'", 0, 2}, // a limit that was lower
		{"clock_timestamp() + interval '15 seconds'", 1, 1.5},
		{"clock_timestamp() - interval '1 day'", 2, 2},
		{"'-infinity'", 2, 2},
	} {
		_, err := s.Across("a test").Exec(t.Context(), `INSERT INTO token_buckets VALUES ($1, `+full.at+`)
ON CONFLICT (bucket_id) DO UPDATE SET full_at = excluded.full_at`, key)
		require.NoError(t, err)
		g := takeTokens(t, s, ratelimit.TokenAsk{Key: key, PerMinute: 2, Needed: 2})
		require.EqualValues(t, full.granted, g.Granted, full.at)
		require.InDelta(t, full.missing, g.Missing, 0.3, full.at)
	}
}

func TestTokensGrantedAheadNeverExceedAQuarterOfTheAvailableTokens(t *testing.T) {
	t.Parallel()
	s, key := testkit.SharedStore(t), publicid.NewAPIKey()
	ask := func(needed, ahead int) int {
		return takeTokens(t, s, ratelimit.TokenAsk{Key: key, PerMinute: 10, Needed: needed, Ahead: ahead}).Granted
	}
	require.Equal(t, 2+2, ask(2, 2))
	require.Equal(t, 1, ask(0, 40), "of six")
	require.Equal(t, 4, ask(4, 0), "of five")
	require.Equal(t, 0, ask(0, 40), "of one")
}

func TestTokensAreReturnedAndUnrequestedSpendingIsCharged(t *testing.T) {
	t.Parallel()
	s, key := testkit.SharedStore(t), publicid.NewAPIKey()
	ask := func(needed, owed int) int {
		return takeTokens(t, s, ratelimit.TokenAsk{Key: key, PerMinute: 5, Needed: needed, Owed: owed}).Granted
	}
	require.Equal(t, 5, ask(5, 0))
	require.Equal(t, 2, ask(5, -2))
	require.Equal(t, 5, ask(20, -100), "never more than all")
	require.Equal(t, 2, ask(0, -2)+ask(4, 0))
	require.Equal(t, 0, ask(1, 1_000_000), "never less than nothing")
	require.Equal(t, 1, ask(3, -1))
}

func TestAsksForManyKeysAreAnsweredInTheirOrder(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	asks := make([]ratelimit.TokenAsk, 50)
	for i := range asks {
		asks[i] = ratelimit.TokenAsk{Key: publicid.NewAPIKey(), PerMinute: 1000, Needed: i}
	}
	// One of the keys already has a row.
	takeTokens(t, s, ratelimit.TokenAsk{Key: asks[7].Key, PerMinute: 1000, Needed: 1})
	rand.Shuffle(len(asks), func(i, j int) { asks[i], asks[j] = asks[j], asks[i] })
	grants, err := ratelimit.TakeTokens(t.Context(), s, asks)
	require.NoError(t, err)
	for i, g := range grants {
		require.Equal(t, asks[i].Needed, g.Granted)
	}
}

func TestManyProcessesTakeNoMoreThanTheBucketsHold(t *testing.T) {
	t.Parallel()
	s := testkit.Store(t) // full buckets of all keys are removed
	const perMinute = 120
	keys := make([]publicid.APIKey, 5)
	for i := range keys {
		keys[i] = publicid.NewAPIKey()
	}
	var (
		mu    sync.Mutex
		taken = map[publicid.APIKey]int{}
		all   sync.WaitGroup
		began = time.Now()
	)
	for range 8 {
		all.Go(func() {
			for range 40 {
				// The order of the keys differs each time.
				asks := make([]ratelimit.TokenAsk, len(keys))
				for i, at := range rand.Perm(len(keys)) {
					asks[i] = ratelimit.TokenAsk{Key: keys[at], PerMinute: perMinute, Needed: 1 + rand.IntN(3), Ahead: rand.IntN(9)}
				}
				grants, err := ratelimit.TakeTokens(t.Context(), s, asks)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for i, g := range grants {
					taken[asks[i].Key] += g.Granted
				}
				mu.Unlock()
			}
		})
	}
	all.Go(func() {
		for range 20 {
			if err := ratelimit.RemoveFullBuckets(t.Context(), s); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	for _, key := range keys {
		require.GreaterOrEqual(t, taken[key], perMinute)
		require.LessOrEqual(t, taken[key], perMinute+refill(perMinute, began))
	}
}

func TestOnlyBucketsThatAreFullAreRemoved(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s, c := fixture.Open(t, url), fixture.Connect(t, url)
	full, used := publicid.NewAPIKey(), publicid.NewAPIKey()
	for _, key := range []publicid.APIKey{full, used} {
		takeTokens(t, s, ratelimit.TokenAsk{Key: key, PerMinute: 10, Needed: 5})
	}
	takeTokens(t, s, ratelimit.TokenAsk{Key: full, PerMinute: 10, Owed: -5})
	require.NoError(t, ratelimit.RemoveFullBuckets(t.Context(), s))
	require.Equal(t, []string{used.UUID().String()}, fixture.Texts(t, c, "SELECT bucket_id::text FROM token_buckets"))
	require.Equal(t, 10, takeTokens(t, s, ratelimit.TokenAsk{Key: full, PerMinute: 10, Needed: 20}).Granted)
}

func TestTheRateLimitTableIsUnlogged(t *testing.T) {
	t.Parallel()
	c := fixture.Connect(t, testkit.SharedDatabase(t))
	require.Equal(t, []string{"u"}, fixture.Texts(t, c, "SELECT relpersistence::text FROM pg_class WHERE relname = 'token_buckets'"))
}
