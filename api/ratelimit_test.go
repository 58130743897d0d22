package api

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
)

// The bubble's clock stands still while anybody is busy.
func TestABudgetIsExactWhenEverybodyAsksAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers, each, budget = 64, 32, 600
		l, key := newLimiter(budget), publicid.NewAPIKey()
		ask := func() (passed int, left []int) {
			var mu sync.Mutex
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for range each {
						if ok, n, _ := l.bucket(key, nil).take(); ok {
							mu.Lock()
							passed, left = passed+1, append(left, int(n))
							mu.Unlock()
						}
					}
				})
			}
			all.Wait()
			return passed, left
		}
		passed, left := ask()
		require.Equal(t, budget, passed)
		told := map[int]bool{}
		for _, n := range left {
			told[n] = true
		}
		require.Len(t, told, budget, "each request is told another number of those that are left")
		time.Sleep(time.Second)
		passed, _ = ask()
		require.Equal(t, budget/60, passed, "what a second refills")
		time.Sleep(time.Hour)
		passed, _ = ask()
		require.Equal(t, budget, passed, "and never more than the budget")
	})
}
