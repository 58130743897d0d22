package feedback_test

import (
	"slices"
	"sync"
	"testing"

	"earshot/internal/testkit/apptest"
)

// atOnce calls do several times concurrently and returns all answers.
func atOnce(count int, do func(i int) apptest.Answer) []apptest.Answer {
	answers := make([]apptest.Answer, count)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() {
			<-start
			answers[i] = do(i)
		})
	}
	close(start)
	all.Wait()
	return answers
}

// atOnce sends the same request several times concurrently.
func (n *tenant) atOnce(t *testing.T, count int, method, path string, body func(i int) any) []apptest.Answer {
	t.Helper()
	return atOnce(count, func(i int) apptest.Answer { return request{n, method, path, body(i)}.do(t) })
}

// values returns a field of each answer's data, sorted.
func values(answers []apptest.Answer, name string) []string {
	var all []string
	for _, a := range answers {
		if v, ok := a.Data()[name].(string); ok {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all
}

// statuses counts answers by status.
func statuses(answers []apptest.Answer) map[int]int {
	counts := map[int]int{}
	for _, a := range answers {
		counts[a.Status]++
	}
	return counts
}
