package fairness

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"earshot/internal/testkit/tier"
)

// Enables a test that takes minutes: go test ./internal/delivery/fairness -run Mechanism -v -mechanisms
var mechanismsToo = flag.Bool("mechanisms", false, "simulate what each mechanism of docs/fairness.md changes")

// run simulates a scenario.
func (s scenario) run(t *testing.T, r rules, off omitted) (w *world) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { w = simulate(r, off, s.length, s.into) })
	return w
}

func named(t *testing.T, name string) scenario {
	t.Helper()
	for _, s := range scenarios() {
		if s.name == name {
			return s
		}
	}
	require.Fail(t, "no such scenario", name)
	return scenario{}
}

// inShort are the scenarios of `make test`: a receiver that hangs, large payloads, and a receiver
// that recovers. `make test-all` runs all scenarios.
var inShort = []string{"hangs", "drips, 768 KiB each", "refuses, comes back"}

func TestNoReceiverMakesTheOthersTwiceAsSlowAndOneThatComesBackHasEverythingWithinTenMinutes(t *testing.T) {
	tier.OneByOne(t)
	t.Parallel()
	alone := named(t, "alone").run(t, production(), omitted{})
	t.Logf("%-24s %10s %10s %10s %10s %10s %9s %7s %10s", "neighbour", "own p50", "own p99", "others p50", "others p99", "retry late", "workflows", "timers", "back after")
	for _, s := range scenarios() {
		if s.optional || testing.Short() && !slices.Contains(inShort, s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := s.run(t, production(), omitted{})
			t.Logf("%-24s %10s %10s %10s %10s %10s %9d %7d %10s", s.name, w.latency(true, .5), w.latency(true, .99),
				w.latency(false, .5), w.latency(false, .99), w.lateness(false, .99), w.workflows, w.timers, w.offered().Round(time.Second))
			healthy, neighbours := w.starved()
			require.Zero(t, healthy, "nobody starves")
			if !s.unchecked {
				require.LessOrEqual(t, w.latency(true, .99), 2*alone.latency(false, .99))
				require.LessOrEqual(t, w.latency(false, .99), 2*alone.latency(false, .99))
			}
			if s.back {
				require.Zero(t, neighbours)
				require.Positive(t, w.offered(), "it has everything")
				require.LessOrEqual(t, w.offered(), 10*time.Minute)
			}
		})
	}
}

func TestARunOfTheSimulationComesToTheSameFiguresAgain(t *testing.T) {
	t.Parallel()
	of := func() string {
		w := named(t, "hangs").run(t, production(), omitted{})
		return fmt.Sprint(w.latency(true, .99), w.latency(false, .99), w.workflows, w.timers, w.putOffs, w.attempts)
	}
	require.Equal(t, of(), of())
}

// mechanism is a row of docs/fairness.md.
type mechanism struct {
	name, scenario, figure string
	of                     func(*world) any
	leaveOut               func(*rules, *omitted)
}

func own99(w *world) any       { return w.latency(true, .99) }
func others99(w *world) any    { return w.latency(false, .99) }
func ownLate(w *world) any     { return w.lateness(true, .99) }
func othersLate(w *world) any  { return w.lateness(false, .99) }
func unattempted(w *world) any { n, _ := w.starved(); return n }
func workflows(w *world) any   { return w.workflows }
func timers(w *world) any      { return w.timers }

func mechanisms() []mechanism {
	const all = 1 << 40
	return []mechanism{
		{"turns", "healthy as well", "p99 of other organizations", others99, func(_ *rules, o *omitted) { o.turns = true }},
		{"maxWaiting", "Temporal is away", "starts of others left to the sweep", func(w *world) any { return w.refused() }, func(_ *rules, o *omitted) { o.turns = true }},
		{"shared groups", "200 organizations", "p99 of the healthy", others99, func(_ *rules, o *omitted) { o.sharedGroups = true }},
		{"singleRate, busyInterval", "healthy as well", "workflows", workflows, func(r *rules, _ *omitted) { r.singleRate = rate.Inf }},
		{"singleBurst", "40 a second", "p50 of the stream", func(w *world) any { return w.neighbours(.5) }, func(r *rules, _ *omitted) { r.singleBurst = 1 }},
		{"busyFor", "healthy as well", "workflows", workflows, func(r *rules, _ *omitted) { r.busyFor = 1 }},
		{"laggingInterval", "24 webhooks hang", "p99 of the organization", own99, func(r *rules, _ *omitted) { r.laggingInterval = r.busyInterval }},
		{"lagging by failures", "200 of all kinds", "workflows", workflows, func(_ *rules, o *omitted) { o.failures = true }},
		{"lagging by demand", "answers after 3 s", "p99 of the organization", own99, func(_ *rules, o *omitted) { o.demand = true }},
		{"failuresKept", "200 of all kinds", "workflows", workflows, func(r *rules, _ *omitted) { r.failuresKept = 0 }},
		{"webhookConcurrency", "drips, 768 KiB each", "p99 of the organization", own99, func(r *rules, _ *omitted) { r.webhookConcurrency = all }},
		{"backlog", "hangs", "timers", timers, func(_ *rules, o *omitted) { o.backlog = true }},
		{"duration", "hangs, 5 a second", "timers", timers, func(_ *rules, o *omitted) { o.duration = true }},
		{"average", "hangs four times of five", "p99 of other organizations", others99, func(_ *rules, o *omitted) { o.average = true }},
		{"groups at once", "24 drip, 768 KiB each", "timers", timers, func(_ *rules, o *omitted) { o.groupsAtOnce = true }},
		{"reservedAhead", "hangs, comes back", "until it has everything", func(w *world) any { return w.offered() }, func(r *rules, _ *omitted) { r.reservedAhead = 24 * time.Hour }},
		{"firstWait", "800 a second", "put off", func(w *world) any { return w.putOffs }, func(_ *rules, o *omitted) { o.firstWait = true }},
		{"no firstWait behind a backlog", "24 drip, 768 KiB each", "healthy without an attempt", unattempted, func(_ *rules, o *omitted) { o.noFirstWait = true }},
		{"retryInterval", "500 a second, refuses", "most in a second, once it is back", func(w *world) any { return w.most(comesBack) }, func(r *rules, _ *omitted) { r.retryInterval = 0 }},
		{"retries by number", "500 a second, refuses", "until it has everything", func(w *world) any { return w.offered() }, func(_ *rules, o *omitted) { o.ownRetries = true }},
		{"laterPerWebhook", "hangs, 5 a second", "lateness of the organization's retries", ownLate, func(r *rules, _ *omitted) { r.laterPerWebhook = all }},
		{"laterPerOrganization", "24 webhooks hang", "lateness of others' retries", othersLate, func(r *rules, _ *omitted) { r.laterPerOrganization = all }},
		{"laterWait", "24 webhooks hang", "p99 of other organizations", others99, func(r *rules, _ *omitted) { r.laterWait = 1 }},
		{"fairness keys", "200 of all kinds", "lateness of others' retries", othersLate, func(_ *rules, o *omitted) { o.fairnessKeys = true }},
		{"payloadMemoryMax", "24 drip, 768 KiB each", "MiB of payloads", func(w *world) any { return w.peakMemory >> 20 }, func(r *rules, _ *omitted) { r.payloadMemoryMax = all }},
		{"memoryWait", "24 drip, 768 KiB each", "p99 of other organizations", others99, func(r *rules, _ *omitted) { r.memoryWait = 1 }},
		{"whole seconds", "answers 500", "timers", timers, func(_ *rules, o *omitted) { o.wholeSeconds = true }},
	}
}

func TestEachFairnessMechanismChangesItsFigure(t *testing.T) {
	if !*mechanismsToo {
		t.Skip("it takes minutes: -mechanisms")
	}
	t.Parallel()
	for _, m := range mechanisms() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			r, off := production(), omitted{}
			with := m.of(named(t, m.scenario).run(t, r, off))
			m.leaveOut(&r, &off)
			without := m.of(named(t, m.scenario).run(t, r, off))
			t.Logf("%s: %s, %s: %v, without %v", m.name, m.scenario, m.figure, with, without)
			require.NotEqual(t, with, without)
		})
	}
}

// TestThePageOfTheRulesHasTheirParameters reads `name` = value from docs/fairness.md.
func TestThePageOfTheRulesHasTheirParameters(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/fairness.md")
	require.NoError(t, err)
	said := map[string]string{}
	for _, m := range regexp.MustCompile("`(\\w+)` = ([\\w.]+)").FindAllStringSubmatch(string(page), -1) {
		said[m[1]] = m[2]
	}
	parameters := map[string]string{}
	for field, value := range reflect.ValueOf(production()).Fields() {
		switch {
		case field.Type == reflect.TypeFor[time.Duration]():
			parameters[field.Name] = time.Duration(value.Int()).String()
		case field.Name != "randN":
			parameters[field.Name] = fmt.Sprint(value)
		}
	}
	require.Equal(t, parameters, said)
}
