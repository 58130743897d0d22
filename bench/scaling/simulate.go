package main

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
)

// The rules for gathering deliveries (internal/delivery/fairness/rules.go), in milliseconds.
const (
	singleRate   = 60.0 // events a second, of one stream in one process
	busyInterval = 30.0
	groupMax     = 60
	startsAtOnce = 2
	// The share of a workflow's cost before its attempts: the start and the first workflow task.
	// The rest is spent at the end.
	beforeAttempts = 0.4
)

// tier is a set of processors with a common queue.
type tier struct {
	cores   int
	busy    int
	waiting []task
	used    float64
}

type task struct {
	took float64
	then func()
}

// machines assigns a tier to each process.
type machines struct {
	costs costs
	// dispatchers is the number of API processes. streams is the number of busy pairs of
	// organization and event type. Each process gathers its own deliveries.
	dispatchers, streams                  int
	api, worker, postgres, temporal, load func(*world) *tier
	tiers                                 []int // processors of each tier
}

// oneMachineCores is the number of processors of the measured machine.
const oneMachineCores = 2

// oneMachine is the stack of `make up` and its load on two processors.
func oneMachine(c costs) machines {
	all := func(w *world) *tier { return &w.tiers[0] }
	return machines{costs: c, dispatchers: 1, streams: 1, api: all, worker: all, postgres: all, temporal: all, load: all, tiers: []int{oneMachineCores}}
}

// outcome is the result of a simulation.
type outcome struct {
	perSecond float64
	p50, p99  float64
	workflows float64
	// busy is the utilisation of each tier.
	busy []float64
}

type event struct {
	at float64
	do func()
}

type agenda []event

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// gatherer is one stream in one process.
type gatherer struct {
	waiting  []float64 // start times of the waiting requests
	armed    bool
	last     float64 // start time of the last group
	starting *int    // shared by the process
}

type world struct {
	machines
	random   *rand.Rand
	now      float64
	agenda   agenda
	tiers    []tier
	streams  []gatherer
	busy     bool
	arrivals []float64
	last     float64
	runs     int
}

func (m machines) world(perSecond float64) *world {
	w := &world{machines: m, random: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // the same figures at each run
	for _, cores := range m.tiers {
		w.tiers = append(w.tiers, tier{cores: cores})
	}
	for range m.dispatchers {
		starting := new(int)
		for range m.streams {
			w.streams = append(w.streams, gatherer{starting: starting})
		}
	}
	w.busy = perSecond/float64(len(w.streams)) > singleRate
	return w
}

func (w *world) after(took float64, do func()) { heap.Push(&w.agenda, event{w.now + took, do}) }

// workOf does the work of an event. The more of the tier is idle, the longer it takes. The request
// pays half of the cost of waking, and the delivery pays the other half. Half of each part is spent
// after the result, on the way back to idle.
func (w *world) workOf(t *tier, took, wake float64, then func()) {
	more := wake / 4 * float64(t.cores-t.busy) / float64(t.cores)
	w.work(t, took+more, func() {
		then()
		w.work(t, more, func() {})
	})
}

// work occupies a processor of the tier for the given time, as soon as one is free.
func (w *world) work(t *tier, took float64, then func()) {
	if t.busy == t.cores {
		t.waiting = append(t.waiting, task{took, then})
		return
	}
	t.busy++
	t.used += took
	w.after(took, func() {
		t.busy--
		if len(t.waiting) > 0 {
			next := t.waiting[0]
			t.waiting = t.waiting[1:]
			w.work(t, next.took, next.then)
		}
		then()
	})
}

func (w *world) run() {
	for len(w.agenda) > 0 {
		next := heap.Pop(&w.agenda).(event)
		w.now = next.at
		next.do()
	}
}

// request is one post. It calls done when the client has the answer.
func (w *world) request(done func()) {
	began, r, wake := w.now, w.costs.request, w.costs.wake
	w.workOf(w.load(w), r.client, wake.client, func() {
		w.workOf(w.api(w), r.service, wake.service, func() {
			w.workOf(w.postgres(w), r.postgres, wake.postgres, func() {
				w.after(w.costs.wait/2, func() { // the write of the commit
					s := &w.streams[w.random.IntN(len(w.streams))]
					s.waiting = append(s.waiting, began)
					w.gather(s)
					done()
				})
			})
		})
	})
}

func (w *world) gather(s *gatherer) {
	switch {
	case s.armed || len(s.waiting) == 0:
		return
	case len(s.waiting) >= groupMax || !w.busy:
		w.start(s)
		return
	}
	s.armed = true
	w.after(max(0, s.last+busyInterval-w.now), func() {
		s.armed = false
		w.start(s)
	})
}

// start starts a workflow with at most one full group. While startsAtOnce starts of the process are
// under way, deliveries continue to gather.
func (w *world) start(s *gatherer) {
	if len(s.waiting) == 0 || *s.starting >= startsAtOnce {
		return
	}
	n := min(groupMax, len(s.waiting))
	group := slices.Clone(s.waiting[:n])
	s.waiting = s.waiting[n:]
	*s.starting++
	s.last = w.now
	w.runs++
	c := w.costs
	w.work(w.temporal(w), c.workflow.temporal*beforeAttempts, func() {
		*s.starting--
		w.gather(s)
		w.work(w.worker(w), c.workflow.service*beforeAttempts, func() {
			w.attempts(group, func() {
				w.work(w.worker(w), c.workflow.service*(1-beforeAttempts), func() {})
				w.work(w.temporal(w), c.workflow.temporal*(1-beforeAttempts), func() {})
				w.work(w.postgres(w), c.workflow.postgres, func() {})
			})
		})
	})
}

// attempts makes all attempts of a group in parallel: claim, request, record.
func (w *world) attempts(group []float64, then func()) {
	left := len(group)
	d, wake := w.costs.delivery, w.costs.wake
	for _, began := range group {
		w.workOf(w.postgres(w), d.postgres/2, wake.postgres/2, func() {
			w.after(w.costs.wait/2, func() {
				w.workOf(w.worker(w), d.service, wake.service, func() {
					w.workOf(w.load(w), d.client, wake.client, func() {
						w.arrivals = append(w.arrivals, w.now-began)
						w.last = w.now
						w.workOf(w.temporal(w), d.temporal, 2*wake.temporal, func() {})
						w.workOf(w.postgres(w), d.postgres/2, wake.postgres/2, func() {
							if left--; left == 0 {
								then()
							}
						})
					})
				})
			})
		})
	}
}

// steady simulates a constant rate of events, regardless of their latency.
func (m machines) steady(perSecond float64) outcome {
	const seconds = 5
	w := m.world(perSecond)
	for i := range int(perSecond * seconds) {
		// A random offset avoids lockstep with the dispatcher's clock.
		at := (float64(i) + w.random.Float64()) * 1000 / perSecond
		heap.Push(&w.agenda, event{at, func() { w.request(func() {}) }})
	}
	w.background(seconds)
	w.run()
	return w.outcome(seconds)
}

// burst simulates the given number of connections. Each sends its requests one after the other.
func (m machines) burst(events, connections int) outcome {
	w := m.world(math.Inf(1))
	left := events
	var next func()
	next = func() {
		if left > 0 {
			left--
			w.request(next)
		}
	}
	for range connections {
		next()
	}
	w.run()
	return w.outcome(w.last / 1000)
}

// background is the work of the processes without load, in slices of 10 ms.
func (w *world) background(seconds int) {
	for i := range seconds * 100 {
		heap.Push(&w.agenda, event{float64(i) * 10, func() {
			w.work(w.worker(w), w.costs.idle.service/100, func() {})
			w.work(w.postgres(w), w.costs.idle.postgres/100, func() {})
			w.work(w.temporal(w), w.costs.idle.temporal/100, func() {})
		}})
	}
}

func (w *world) outcome(seconds float64) outcome {
	slices.Sort(w.arrivals)
	n := len(w.arrivals)
	o := outcome{
		perSecond: float64(n) / (w.last / 1000), workflows: float64(w.runs) / float64(n),
		p50: w.arrivals[n/2], p99: w.arrivals[n*99/100],
	}
	for _, t := range w.tiers {
		o.busy = append(o.busy, t.used/1000/seconds/float64(t.cores))
	}
	return o
}
