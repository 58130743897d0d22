package pagecache

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"

	"earshot/internal/memory"
)

func newCache(slots int) *Cache[string] {
	return New(slots, 0, noop.Int64Counter{}, func(page string) int { return len(page) })
}

var readers atomic.Uint32

// some returns a reader in a network and of an organization that no other reader has.
func some() Reader {
	var address [4]byte
	binary.BigEndian.PutUint32(address[:], readers.Add(1))
	network := netip.PrefixFrom(netip.AddrFrom4(address), 32)
	return Reader{Network: network, Organization: network.String()}
}

func answering(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}

// The clock belongs to synctest: a sleep advances it and takes no real time.
func TestAPageThatManyReadIsMadeOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache(2)
		var made atomic.Int32
		slow := func(ctx context.Context) (string, error) {
			time.Sleep(100 * time.Millisecond)
			return answering(fmt.Sprint(made.Add(1)))(ctx)
		}
		read := func() string {
			a, err := c.Get(t.Context(), some(), "key", slow)
			require.NoError(t, err)
			return a
		}
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { require.Equal(t, "1", read()) })
		}
		all.Wait()
		time.Sleep(pageFresh - 101*time.Millisecond)
		require.Equal(t, "1", read())
		time.Sleep(time.Millisecond)
		require.Equal(t, "2", read(), "it counts from when the first began to be made")
	})
}

func TestThePageCacheLimitsConcurrentPagesAndRefusesLongWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache(2)
		over := make(chan struct{})
		var all sync.WaitGroup
		for i := range 2 {
			all.Go(func() {
				_, err := c.Get(t.Context(), some(), fmt.Sprint("slow", i), func(ctx context.Context) (string, error) {
					<-over
					return answering("slow")(ctx)
				})
				require.NoError(t, err)
			})
		}
		synctest.Wait()
		began := time.Now()
		_, err := c.Get(t.Context(), some(), "other", answering("other"))
		require.ErrorIs(t, err, ErrBusy)
		require.Equal(t, slotWait, time.Since(began))
		all.Go(func() {
			_, err := c.Get(t.Context(), some(), "other", answering("other"))
			require.NoError(t, err, "a slot became free in time")
		})
		synctest.Wait()
		close(over)
		all.Wait()
	})
}

// A flood of requests for different pages comes from one network, or from many networks for the pages
// of one organization.
func TestAFloodLeavesHalfOfTheSlotsToOthers(t *testing.T) {
	t.Parallel()
	one := some()
	for name, flooding := range map[string]func() Reader{
		"of one network":      func() Reader { return Reader{Network: one.Network, Organization: some().Organization} },
		"of one organization": func() Reader { return Reader{Network: some().Network, Organization: one.Organization} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, over := newCache(4), make(chan struct{})
				dear := func(context.Context) (string, error) { <-over; return "dear", nil }
				var all sync.WaitGroup
				refused := make(chan struct{})
				for i := range 50 {
					all.Go(func() {
						if _, err := c.Get(t.Context(), flooding(), fmt.Sprint("flood", i), dear); errors.Is(err, ErrBusy) {
							refused <- struct{}{}
						}
					})
				}
				synctest.Wait()
				began := time.Now()
				for i := range 50 {
					_, err := c.Get(t.Context(), some(), fmt.Sprint("other", i), answering("other"))
					require.NoError(t, err)
				}
				require.Zero(t, time.Since(began), "nobody else waits")
				for range 48 {
					<-refused
				}
				close(over)
				all.Wait() // a further refusal would block it, which fails the test
			})
		})
	}
}

// A network whose share is used up requests the page that everybody reads.
func TestAPopularPageDoesNotWaitForAFloodedNetwork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, over := newCache(2), make(chan struct{})
		flooding := some()
		var all sync.WaitGroup
		for _, key := range []string{"dear", "popular"} {
			all.Go(func() {
				_, _ = c.Get(t.Context(), flooding, key, func(context.Context) (string, error) { <-over; return key, nil })
			})
			synctest.Wait()
		}
		began := time.Now()
		page, err := c.Get(t.Context(), some(), "popular", answering("popular"))
		require.NoError(t, err)
		require.Equal(t, "popular", page)
		require.Zero(t, time.Since(began))
		close(over)
		all.Wait()
	})
}

func TestAFailedPageIsRenderedAgainDespiteACanceledReader(t *testing.T) {
	t.Parallel()
	c := newCache(1)
	broken := errors.New("broken")
	_, err := c.Get(t.Context(), some(), "key", func(context.Context) (string, error) { return "", broken })
	require.ErrorIs(t, err, broken)
	left, leave := context.WithCancel(t.Context())
	leave()
	a, err := c.Get(left, some(), "key", func(ctx context.Context) (string, error) {
		require.NoError(t, ctx.Err())
		return answering("whole")(ctx)
	})
	require.NoError(t, err)
	require.Equal(t, "whole", a)
}

func TestThePageCacheHasABoundedSize(t *testing.T) {
	t.Parallel()
	c := newCache(1)
	text := strings.Repeat("x", memory.FreeAnswer-100)
	for i := range 2 * MaxKept / len(text) {
		_, err := c.Get(t.Context(), some(), fmt.Sprint(i), answering(text))
		require.NoError(t, err)
		require.LessOrEqual(t, c.kept.size, MaxKept)
	}
	require.Greater(t, c.kept.size, MaxKept-2*len(text))
	_, err := c.Get(t.Context(), some(), "large", answering(text+text))
	require.NoError(t, err)
	require.Nil(t, c.kept.find("large"), "slow readers would hold more of it than their connections have")
}

func TestAPageShowsDataThatIsAtMostOneSecondOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, boards := newCache(2), NewExpiring(1<<20, func(string) (int, bool) { return 1, true })
		began := time.Now()
		// The content of a page is the time at which its board was read.
		get := func(page string) (read time.Duration) {
			a, err := c.Get(t.Context(), some(), page, func(ctx context.Context) (string, error) {
				return Shared(ctx, boards, false, "board", func(context.Context) (string, error) {
					return time.Since(began).String(), nil
				})
			})
			require.NoError(t, err)
			read, err = time.ParseDuration(a)
			require.NoError(t, err)
			return read
		}
		require.Zero(t, get("first"))
		time.Sleep(boardFresh - 1)
		require.Zero(t, get("second"), "what pages have in common is read once")
		time.Sleep(pageFresh - boardFresh + 1)
		require.Equal(t, pageFresh, get("first"))
		require.Zero(t, get("second"), "the pages of a board are made again one by one")
		time.Sleep(time.Second - pageFresh)
		require.Positive(t, get("second"), "what it shows was read a second ago")
		anew, err := Shared(t.Context(), boards, true, "board", answering("as it is"))
		require.NoError(t, err)
		require.Equal(t, "as it is", anew, "a reader who acts sees what is")
	})
}

func TestReadersLeaveHalfOfTheProcessorsAndMostConnectionsToTheAPI(t *testing.T) {
	t.Parallel()
	require.Equal(t, 2, SlotsOf(1, 20), "a network gets half of them")
	require.Equal(t, 2, SlotsOf(2, 20))
	require.Equal(t, 4, SlotsOf(8, 20))
	require.Equal(t, 5, SlotsOf(64, 20))
	require.Equal(t, 2, SlotsOf(8, 3))
}
