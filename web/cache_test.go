package web

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/memory"
)

var discard = slog.New(slog.DiscardHandler)

func answering(text string) func(context.Context) (*answer, error) {
	return func(context.Context) (*answer, error) { return newAnswer(http.StatusOK, typeHTML, []byte(text)), nil }
}

// Time is synctest's own: a sleep moves it on, and takes none.
func TestAPageThatManyReadIsMadeOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache(Options{Slots: 2})
		var made atomic.Int32
		slow := func(ctx context.Context) (*answer, error) {
			time.Sleep(100 * time.Millisecond)
			return answering(fmt.Sprint(made.Add(1)))(ctx)
		}
		read := func() string {
			a, err := c.get(t.Context(), "key", slow)
			require.NoError(t, err)
			return string(a.body)
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

func TestOnlySoManyPagesAreMadeAtOnceAndWhoWaitsForLongIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache(Options{Slots: 2})
		over := make(chan struct{})
		var all sync.WaitGroup
		for i := range 2 {
			all.Go(func() {
				_, err := c.get(t.Context(), fmt.Sprint("slow", i), func(ctx context.Context) (*answer, error) {
					<-over
					return answering("slow")(ctx)
				})
				require.NoError(t, err)
			})
		}
		synctest.Wait()
		began := time.Now()
		_, err := c.get(t.Context(), "other", answering("other"))
		require.ErrorIs(t, err, errBusy)
		require.Equal(t, slotWait, time.Since(began))
		all.Go(func() {
			_, err := c.get(t.Context(), "other", answering("other"))
			require.NoError(t, err, "a slot became free in time")
		})
		synctest.Wait()
		close(over)
		all.Wait()
	})
}

func TestWhatFailedIsMadeAgainAndAReaderWhoLeavesDisturbsNobody(t *testing.T) {
	t.Parallel()
	c := newCache(Options{Slots: 1})
	broken := errors.New("broken")
	_, err := c.get(t.Context(), "key", func(context.Context) (*answer, error) { return nil, broken })
	require.ErrorIs(t, err, broken)
	left, leave := context.WithCancel(t.Context())
	leave()
	a, err := c.get(left, "key", func(ctx context.Context) (*answer, error) {
		require.NoError(t, ctx.Err())
		return answering("whole")(ctx)
	})
	require.NoError(t, err)
	require.Equal(t, "whole", string(a.body))
}

func TestWhatIsKeptHasAnEnd(t *testing.T) {
	t.Parallel()
	c := newCache(Options{Slots: 1})
	text := strings.Repeat("x", memory.FreeAnswer-100)
	for i := range 2 * maxKept / len(text) {
		_, err := c.get(t.Context(), fmt.Sprint(i), answering(text))
		require.NoError(t, err)
		require.LessOrEqual(t, c.answers.size, maxKept)
	}
	require.Greater(t, c.answers.size, maxKept-2*len(text))
	require.Len(t, c.answers.by, c.answers.recent.Len())
	_, err := c.get(t.Context(), "large", answering(text+text))
	require.NoError(t, err)
	require.Nil(t, c.answers.find("large"), "slow readers would hold more of it than their connections have")
}

func TestAReaderWhoIsRefusedIsToldWhenToComeAgain(t *testing.T) {
	t.Parallel()
	p, err := New(UseCases{}, Options{
		Slots: 1, Wait: time.Nanosecond, Log: discard, Network: func(*http.Request) netip.Prefix { return netip.Prefix{} },
	})
	require.NoError(t, err)
	p.cache.slots <- struct{}{}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/b/acme", nil))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.NotEmpty(t, w.Header().Get("Retry-After"))
	require.Contains(t, w.Body.String(), "Too many readers")
	<-p.cache.slots
	w = httptest.NewRecorder()
	failing := p.serve(func(context.Context, *visit) (*answer, error) { return nil, errors.New("password=secret") })
	failing.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/b/-", nil))
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.NotContains(t, w.Body.String(), "secret")
}

func TestAPageIsNeverOlderThanASecondWithWhatItWasMadeOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, boards := newCache(Options{Slots: 2}), newBoardCache().boards
		began := time.Now()
		// A page says when what it shows was read.
		get := func(page string) (read time.Duration) {
			a, err := c.get(t.Context(), page, func(ctx context.Context) (*answer, error) {
				b, err := shared(ctx, new(visit), boards, "board", func(context.Context) (shownOn, error) {
					return shownOn{Board: &db.Board{Name: time.Since(began).String()}}, nil
				})
				require.NoError(t, err)
				return answering(b.Name)(ctx)
			})
			require.NoError(t, err)
			read, err = time.ParseDuration(string(a.body))
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
		anew, err := shared(t.Context(), &visit{anew: true}, boards, "board", func(context.Context) (shownOn, error) {
			return shownOn{Board: &db.Board{Name: "as it is"}}, nil
		})
		require.NoError(t, err)
		require.Equal(t, "as it is", anew.Name, "who acts sees what is")
	})
}

func TestReadersLeaveHalfOfTheProcessorsAndMostConnectionsToTheAPI(t *testing.T) {
	t.Parallel()
	require.Equal(t, 1, slotsOf(1, 20), "without a slot there would be no pages")
	require.Equal(t, 1, slotsOf(2, 20))
	require.Equal(t, 4, slotsOf(8, 20))
	require.Equal(t, 5, slotsOf(64, 20))
	require.Equal(t, 1, slotsOf(8, 3))
}
