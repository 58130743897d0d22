package fairness

import (
	"cmp"
	"slices"
	"time"

	"earshot/internal/publicid"
)

// This file has the senders and the receivers of the simulation, and its measurements.
const (
	organizations = 20
	healthyOfEach = 10
	// Events a second: for all healthy webhooks together, and for the neighbours.
	healthyRate, neighbourRate = 20, 100
	neighbourEvents            = 10_000
	// The times at which the neighbours' events begin, and at which a neighbour recovers.
	neighbourBegins = 10 * time.Second
	comesBack       = 150 * time.Second
	largestPayload  = 768 << 10
)

// receiver is a webhook and its behaviour.
type receiver struct {
	organization publicid.Organization
	webhook      publicid.Webhook
	eventType    string
	bytes        int
	neighbour    bool
	// beside is true if a neighbour belongs to the same organization.
	beside bool
	// answer returns how long the receiver takes, and whether it succeeds.
	answer func(*world, *delivery) (time.Duration, bool)

	queued  map[publicid.Delivery]*delivery
	all     []*delivery
	refused int
	// first holds the times from an event to its first attempt, and late the delays of later
	// attempts.
	first, late []time.Duration
	// bySecond counts the attempts in each second of the run.
	bySecond map[int]int
}

func (to *receiver) attempted(w *world, d *delivery) {
	now := time.Now()
	if d.attempt == 1 {
		to.first = append(to.first, now.Sub(d.created))
	} else {
		to.late = append(to.late, now.Sub(d.wanted))
	}
	to.bySecond[int(now.Sub(w.began)/time.Second)]++
	d.tried = now
}

type behaviour func(*world, *delivery) (time.Duration, bool)

func always(d time.Duration, ok bool) behaviour {
	return func(*world, *delivery) (time.Duration, bool) { return d, ok }
}

// flaky fails one first attempt in ten.
func flaky(w *world, d *delivery) (time.Duration, bool) {
	return 10 * time.Millisecond, d.attempt > 1 || w.random.IntN(10) > 0
}

// uneven hangs, but answers one attempt in five immediately.
func uneven(w *world, _ *delivery) (time.Duration, bool) {
	if w.random.IntN(5) == 0 {
		return 10 * time.Millisecond, true
	}
	return 10 * time.Second, false
}

// until behaves like before until the receiver recovers.
func until(before behaviour) behaviour {
	return func(w *world, d *delivery) (time.Duration, bool) {
		if time.Since(w.began) < comesBack {
			return before(w, d)
		}
		return 10 * time.Millisecond, true
	}
}

var (
	well    = always(10*time.Millisecond, true)
	refuses = always(time.Millisecond, false)
	errs    = always(10*time.Millisecond, false)
	hangs   = always(10*time.Second, false)
	slow    = always(3*time.Second, true)
)

// scenario is one neighbour, or several that share its burst of events.
type scenario struct {
	name       string
	behaviours []behaviour
	bytes      int
	length     time.Duration
	// events and rate replace the defaults for all neighbours, unless they are 0.
	events int
	rate   float64
	// apart puts each neighbour into its own organization. away is how long Temporal is
	// unreachable.
	apart bool
	away  time.Duration
	// unchecked leaves out the check of latencies, because the load alone explains them. back is
	// true if the neighbours recover.
	unchecked, back bool
	// optional scenarios run only for the mechanisms. In them the organization harms itself, or the
	// load is too high for two processors.
	optional bool
}

func scenarios() []scenario {
	const short = 4 * time.Minute
	kinds := []behaviour{refuses, errs, hangs, slow, until(hangs), until(refuses), well}
	return []scenario{
		{name: "alone", length: short},
		{name: "healthy as well", behaviours: []behaviour{well}, length: short, unchecked: true},
		{name: "refuses connections", behaviours: []behaviour{refuses}, length: short},
		{name: "answers 500", behaviours: []behaviour{errs}, length: short},
		{name: "hangs", behaviours: []behaviour{hangs}, length: short},
		{name: "drips, 768 KiB each", behaviours: []behaviour{hangs}, bytes: largestPayload, length: short},
		{name: "answers after 3 s", behaviours: []behaviour{slow}, length: short},
		{name: "hangs four times of five", behaviours: []behaviour{uneven}, length: short},
		{name: "24 webhooks hang", behaviours: slices.Repeat([]behaviour{hangs}, 24), length: short, unchecked: true},
		{name: "200 of all kinds", behaviours: slices.Repeat(kinds, 29), length: short, unchecked: true},
		{name: "24 drip, 768 KiB each", behaviours: slices.Repeat([]behaviour{hangs}, 24), bytes: largestPayload, length: short, optional: true},
		{name: "hangs, 5 a second", behaviours: []behaviour{hangs}, length: 2 * short, events: 2000, rate: 5},
		{name: "40 a second", behaviours: []behaviour{well}, length: short, events: 4000, rate: 40, unchecked: true},
		{name: "500 a second, refuses", behaviours: []behaviour{until(refuses)}, length: comesBack + 11*time.Minute, events: 20_000, rate: 500, back: true, optional: true},
		{name: "200 organizations", behaviours: slices.Repeat([]behaviour{well}, 200), length: short, rate: 200, apart: true, unchecked: true},
		{name: "800 a second", behaviours: []behaviour{well}, length: short, events: 20_000, rate: 800, unchecked: true, optional: true},
		{name: "Temporal is away", behaviours: []behaviour{well}, length: 2 * short, events: 60_000, rate: 500, away: 2*time.Minute + neighbourBegins, unchecked: true, optional: true},
		{name: "hangs, comes back", behaviours: []behaviour{until(hangs)}, length: comesBack + 11*time.Minute, back: true},
		{name: "refuses, comes back", behaviours: []behaviour{until(refuses)}, length: comesBack + 11*time.Minute, back: true},
	}
}

// into makes the webhooks and schedules their events.
func (s scenario) into(w *world) {
	var all []publicid.Organization
	for range organizations {
		all = append(all, publicid.NewOrganization())
	}
	types := []string{"post.created", "vote.created", "contact.updated"}
	var healthy []*receiver
	for i := range organizations * healthyOfEach {
		does := well
		if i%5 == 4 {
			does = flaky
		}
		healthy = append(healthy, w.receiver(all[i/healthyOfEach], types[i%len(types)], does))
	}
	w.arrivals(0, s.length-neighbourBegins, healthyRate, func() { w.event(healthy[w.random.IntN(len(healthy))]) })
	var neighbours []*receiver
	w.away = w.began.Add(s.away)
	for i, does := range s.behaviours {
		of := all[i/24]
		if s.apart {
			of = publicid.NewOrganization()
		}
		to := w.receiver(of, types[i%len(types)], does)
		to.bytes, to.neighbour = cmp.Or(s.bytes, to.bytes), true
		neighbours = append(neighbours, to)
		for _, other := range healthy {
			other.beside = other.beside || other.organization == to.organization
		}
	}
	if len(neighbours) > 0 {
		n, events, rate := 0, cmp.Or(s.events, neighbourEvents), cmp.Or(s.rate, neighbourRate)
		w.arrivals(neighbourBegins, time.Duration(float64(events)/rate*float64(time.Second)), rate, func() {
			w.event(neighbours[n%len(neighbours)])
			n++
		})
	}
}

func (w *world) receiver(of publicid.Organization, eventType string, does behaviour) *receiver {
	to := &receiver{
		organization: of, webhook: publicid.NewWebhook(), eventType: eventType, bytes: 2 << 10, answer: does,
		queued: map[publicid.Delivery]*delivery{}, bySecond: map[int]int{},
	}
	w.owners[to.webhook], w.webhooks[to.webhook] = of, to
	w.receivers = append(w.receivers, to)
	return to
}

// arrivals calls do at random moments, on average rate times a second.
func (w *world) arrivals(from, length time.Duration, rate float64, do func()) {
	end := time.Now().Add(from + length)
	gap := func() time.Duration { return time.Duration(w.random.ExpFloat64() / rate * float64(time.Second)) }
	var next func()
	next = func() {
		if time.Now().Before(end) {
			do()
			w.after(gap(), next)
		}
	}
	w.after(from+gap(), next)
}

// figures are the results of a run.
type figures struct {
	receivers                                    []*receiver
	workflows, timers, rounds, putOffs, attempts int
	busy                                         time.Duration
	usedMemory, peakMemory                       int
}

// latency is a quantile of the times to the first attempt at healthy webhooks. beside selects the
// organizations of the neighbours, or else the others.
func (w *world) latency(beside bool, q float64) time.Duration {
	var all []time.Duration
	for _, to := range w.receivers {
		if !to.neighbour && to.beside == beside {
			all = append(all, to.first...)
		}
	}
	return quantile(all, q)
}

// lateness is the same quantile for the delays of later attempts.
func (w *world) lateness(beside bool, q float64) time.Duration {
	var all []time.Duration
	for _, to := range w.receivers {
		if !to.neighbour && to.beside == beside {
			all = append(all, to.late...)
		}
	}
	return quantile(all, q)
}

// neighbours is the latency of the neighbours themselves.
func (w *world) neighbours(q float64) time.Duration {
	var all []time.Duration
	for _, to := range w.receivers {
		if to.neighbour {
			all = append(all, to.first...)
		}
	}
	return quantile(all, q)
}

// refused counts the starts of other organizations for which the queue had no room.
func (w *world) refused() int {
	n := 0
	for _, to := range w.receivers {
		if !to.neighbour && !to.beside {
			n += to.refused
		}
	}
	return n
}

// most is the highest number of attempts that a neighbour got in one second after from.
func (w *world) most(from time.Duration) int {
	n := 0
	for _, to := range w.receivers {
		for second, count := range to.bySecond {
			if to.neighbour && second >= int(from/time.Second) {
				n = max(n, count)
			}
		}
	}
	return n
}

// offered is the time from a receiver's recovery until it had all its events. It is 0 if some are
// missing.
func (w *world) offered() time.Duration {
	var last time.Duration
	for _, to := range w.receivers {
		for _, d := range to.all {
			if !to.neighbour {
				continue
			}
			if !d.ended {
				return 0
			}
			last = max(last, d.tried.Sub(w.began)-comesBack)
		}
	}
	return last
}

// starved counts the deliveries without an attempt.
func (w *world) starved() (healthy, neighbours int) {
	for _, to := range w.receivers {
		n := len(to.all) - len(to.first)
		if to.neighbour {
			neighbours += n
		} else {
			healthy += n
		}
	}
	return healthy, neighbours
}

func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))].Round(100 * time.Microsecond)
}
