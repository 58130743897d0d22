package check_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/e2e/faults/check"
	"earshot/e2e/faults/ledger"
)

// mutation breaks a world that has no violations.
type mutation struct {
	name   string
	change func(w *world)
	// rules are the violated rules, in order, and says is a part of the first violation.
	rules []string
	says  string
}

// delivery runs SQL with a delivery's id as $1.
func delivery(name, sql string) func(*world) {
	return func(w *world) { w.exec(sql, w.deliveries[name]) }
}

// entries changes the ledger's entries of a delivery. n is the index of an entry.
func entries(of string, change func(n int, e *ledger.Entry)) func(*world) {
	return func(w *world) {
		n := 0
		for i := range w.entries {
			if w.entries[i].Delivery == w.deliveries[of].String() {
				change(n, &w.entries[i])
				n++
			}
		}
	}
}

// dropped removes a delivery's receipts from the ledger.
func dropped(of string) func(*world) {
	return func(w *world) {
		w.entries = slices.DeleteFunc(w.entries, func(e ledger.Entry) bool { return e.Delivery == w.deliveries[of].String() })
	}
}

// unmade removes a delivery and everything that refers to it.
func unmade(w *world, of string) {
	dropped(of)(w)
	w.exec(`DELETE FROM deliveries WHERE id = $1`, w.deliveries[of])
}

// test applies the mutation to a copy and checks that exactly the expected rules are violated.
func (m mutation) test(t *testing.T, whole *world) {
	t.Parallel()
	w := whole.copy(t)
	m.change(w)
	report, err := check.RunIn(t.Context(), w.db.(pgx.Tx), w.input())
	require.NoError(t, err)
	var complained []string
	for _, line := range report.Violations {
		rule, _, _ := strings.Cut(line, ": ")
		if !slices.Contains(complained, rule) {
			complained = append(complained, rule)
		}
	}
	require.Equal(t, m.rules, complained, "%q", report.Violations)
	if len(m.rules) == 0 {
		return
	}
	require.Contains(t, report.Violations[0], m.says)
	require.Equal(t, m.rules[0]+": ", report.Violations[0][:len(m.rules[0])+2])
	require.Positive(t, report.ViolationsTotal)
}

func TestEachBrokenPromiseIsToldByItsRule(t *testing.T) {
	t.Parallel()
	all := slices.Concat(eventMutations, deliveryMutations, receiptMutations)
	w := survived(t)
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) { m.test(t, w) })
	}
	broken := map[string]bool{}
	for _, m := range all {
		for _, rule := range m.rules {
			broken[rule] = true
		}
	}
	for _, rule := range check.RuleNames() {
		require.True(t, broken[rule], "no mutation breaks %q", rule)
	}
}

func TestAmbiguousRowsCauseNoViolation(t *testing.T) {
	t.Parallel()
	w := survived(t)
	for _, m := range []mutation{
		{name: "an event of the moment in which its webhook was disabled", change: func(w *world) {
			w.post("late", 100.5)
			d := w.deliver("late", "healthy", 100.5)
			w.attempt(d, 1, 100.6, 200)
			w.succeed(d, 100.63)
		}},
		{name: "an event that an outage held up until its webhook was disabled", change: func(w *world) {
			w.in.Kills = slices.Concat(w.in.Kills, []check.Kill{{What: "postgres", At: at(98), Back: at(99.9)}})
			w.post("late", 98.2)
			d := w.deliver("late", "healthy", 98.2)
			w.attempt(d, 1, 101, 200)
			w.succeed(d, 101.03)
		}},
		{name: "a delivery of that moment", change: func(w *world) {
			w.post("late", 100.5)
			d := w.deliver("late", "healthy", 100.5)
			w.attempt(d, 1, 100.6, 200)
			w.succeed(d, 100.63)
			w.fail(w.deliver("late", "dead", 100.5), 100.7, "webhook_disabled")
		}},
		{name: "a webhook that was enabled again", change: func(w *world) {
			w.exec(`UPDATE webhooks SET enabled = true, disabled_at = NULL, updated_at = $2 WHERE id = $1`,
				w.hooks["dead"], at(140))
		}},
		{name: "a write that was made twice for one lost answer", change: func(w *world) {
			w.in.Acknowledged = w.in.Acknowledged[1:]
		}},
		{name: "an attempt that was claimed before its worker lost Postgres", change: func(w *world) {
			w.in.Kills = slices.Concat(w.in.Kills, []check.Kill{{What: "cut worker-1 to postgres", At: at(29.5), Back: at(32)}})
			w.receive("second to dead", 30, 503)
		}},
		{name: "a request that was cut off because Temporal had given its activity up",
			change: unrecordedDuring("temporal", 0)},
		{name: "an attempt that Postgres without a disk didn't record", change: unrecordedDuring("disk full", 503)},
		{name: "a delivery that was revived", change: func(w *world) {
			w.exec(`UPDATE deliveries SET schedule_start = 5 WHERE id = $1`, w.deliveries["first to dead"])
			for n := range 5 {
				w.attempt("first to dead", n+6, 30+float64(n), 503)
			}
			w.fail("first to dead", 34.1, "")
		}},
		{name: "a recovery that replayed what had failed", change: func(w *world) {
			w.recovery("completed", 40)
			w.exec(`UPDATE deliveries SET replay_of = $2, webhook_id = $3 WHERE id = $1`,
				w.deliveries["replay"], w.deliveries["first to dead"], w.hooks["dead"])
			entries("replay", func(_ int, e *ledger.Entry) { e.Endpoint = "dead" })(w)
		}},
		{name: "bytes that an erasure changed since they were received", change: func(w *world) {
			w.in.Erased.Subjects = []string{w.posts["first"].String()}
			entries("first to healthy", func(_ int, e *ledger.Entry) { e.Sum = sumOf("as it was") })(w)
		}},
		{name: "receipts of a webhook that was deleted", change: func(w *world) {
			w.exec(`DELETE FROM webhooks WHERE id = $1`, w.hooks["dead"])
			w.in.Deleted = []string{"dead"}
		}},
		{name: "rows of a webhook that was deleted and isn't removed yet", change: func(w *world) {
			w.exec(`UPDATE webhooks SET deleted_at = now(), enabled = false, disabled_at = now() WHERE id = $1`, w.hooks["dead"])
			w.in.Deleted = []string{"dead"}
		}},
		{name: "an answer that was under way at a kill", change: entries("third to healthy", func(n int, e *ledger.Entry) {
			if n == 1 {
				e.Kind, e.Status = ledger.Broken, 0
			}
		})},
	} {
		t.Run(m.name, func(t *testing.T) { m.test(t, w) })
	}
}
