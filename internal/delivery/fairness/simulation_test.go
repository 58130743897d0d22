package fairness

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"sync"
	"testing/synctest"
	"time"

	"earshot/internal/change"
	"earshot/internal/publicid"
)

// This file simulates everything outside of the rules: processors, Temporal, the worker and its
// slots. A workflow of one delivery takes 10 ms of two processors, and each further delivery takes
// 1 ms. A round of the later queue costs as much as a first round.
const (
	processors = 2
	// A request of the API with its part of a transaction, at a few hundred requests a second.
	perRequest = time.Millisecond
	// The start and its first workflow task, or the timer with its workflow task and its activity's
	// task.
	beforeRound = 4 * time.Millisecond
	// The work before a request to a receiver, and again after it.
	halfAttempt = 200 * time.Microsecond
	// The results of the round, and the next timer.
	afterRound = 6 * time.Millisecond
	// Each further delivery costs this part of the first one: a tenth.
	further = 10
	// The values of the dispatcher, and the minimum of the worker.
	startsAtOnce = 2
	groupMax     = 60
	laterGroups  = 80
)

// omitted are the mechanisms that a run of the simulation leaves out and that no parameter can turn
// off.
type omitted struct {
	// In the queue: the turns of organizations, and the groups that several organizations share.
	turns, sharedGroups bool
	// The two reasons to lag.
	failures, demand bool
	// In the limits of webhooks: the length of the backlog (backlog). The duration of attempts
	// (duration) and its average (average). The number of groups at once, by which the backlog
	// divides that duration (groupsAtOnce). A rate for each number of a retry (ownRetries). The
	// first wait (firstWait), and its end if the backlog reaches further (noFirstWait).
	backlog, duration, average, groupsAtOnce, ownRetries, firstWait, noFirstWait bool
	// In the runs and in Temporal.
	wholeSeconds, fairnessKeys bool
}

// flatWait is the wait of postponed attempts if the run leaves out the backlog.
const flatWait = 15 * time.Second

type happening struct {
	at  time.Time
	key int
	do  func()
}

type agenda []happening

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if a[i].at.Equal(a[j].at) {
		return a[i].key < a[j].key
	}
	return a[i].at.Before(a[j].at)
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(happening)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// world is one run, in a synctest bubble. Everything happens in one goroutine, except the waits for
// a slot or for memory. Every run therefore gives the same figures.
type world struct {
	rules  rules
	off    omitted
	random *rand.Rand
	began  time.Time
	// life ends the waits that are still open at the end of the run.
	life context.Context

	queue  *Queue
	limits *WebhookLimits
	later  *LaterLimits
	memory *PayloadMemory

	mu     sync.Mutex
	agenda agenda
	keys   int
	// todo is the work of each process, and had is the processor time that each process got.
	todo     [2][]work
	had      [2]time.Duration
	occupied int
	starting int
	wakeAt   time.Time
	// away is the time until which Temporal is unreachable.
	away    time.Time
	running int
	lines   []line

	owners   map[publicid.Webhook]publicid.Organization
	webhooks map[publicid.Webhook]*receiver
	figures
}

// delivery is a delivery on its way.
type delivery struct {
	to      *receiver
	pending change.PendingDelivery
	created time.Time
	attempt int
	// at is when the attempt is due. wanted is when it was due before it was postponed.
	at, wanted     time.Time
	tried          time.Time
	flying, ended  bool
	putOff, failed bool
	atLeast        time.Duration
	in             time.Duration
}

// simulate makes a run of this length. Its caller is in a synctest bubble.
func simulate(r rules, off omitted, length time.Duration, fill func(*world)) *world {
	random := rand.New(rand.NewPCG(1, 2)) // the same figures in each run
	r.randN = random.Int64N
	w := &world{
		rules: r, off: off, random: random, began: time.Now(),
		queue: newQueue(r), limits: newWebhookLimits(r), later: newLaterLimits(r), memory: newPayloadMemory(r),
		owners: map[publicid.Webhook]publicid.Organization{}, webhooks: map[publicid.Webhook]*receiver{},
	}
	var over context.CancelFunc
	w.life, over = context.WithCancel(context.Background())
	if off.groupsAtOnce {
		w.limits.rules.laterPerWebhook = r.webhookConcurrency
	}
	fill(w)
	for end := w.began.Add(length); len(w.agenda) > 0 && w.agenda[0].at.Before(end); {
		next := heap.Pop(&w.agenda).(happening)
		time.Sleep(time.Until(next.at))
		synctest.Wait()
		next.do()
		synctest.Wait()
	}
	over()
	synctest.Wait()
	return w
}

// after schedules do. Functions with the same time run in the order of the calls.
func (w *world) after(d time.Duration, do func()) {
	w.keys++
	w.keyed(w.keys, d, do)
}

func (w *world) keyed(key int, d time.Duration, do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	heap.Push(&w.agenda, happening{time.Now().Add(d), key, do})
}

// work is a task of a process, which takes its tasks in order. The two processes get equal times
// while both have work.
type work struct {
	cost time.Duration
	then func()
}

const (
	ours = iota
	temporals
)

func (w *world) work(process int, cost time.Duration, then func()) {
	if process == temporals {
		// Temporal's times vary, so that the p99 of a healthy webhook alone matches the benchmark.
		cost = time.Duration(float64(cost) * (w.random.ExpFloat64() + w.random.ExpFloat64()) / 2)
	}
	w.todo[process] = append(w.todo[process], work{cost, then})
	w.process()
}

// roundOf is the cost of a round, given the cost of a round with one delivery.
func roundOf(all []*delivery, one time.Duration) time.Duration {
	return one + time.Duration(len(all)-1)*one/further
}

func (w *world) process() {
	for w.occupied < processors {
		turn := ours
		switch {
		case len(w.todo[ours])+len(w.todo[temporals]) == 0:
			return
		case len(w.todo[ours]) == 0:
			turn = temporals
			w.had[ours] = max(w.had[ours], w.had[temporals])
		case len(w.todo[temporals]) == 0:
			w.had[temporals] = max(w.had[temporals], w.had[ours])
		case w.had[temporals] < w.had[ours]:
			turn = temporals
		}
		next := w.todo[turn][0]
		w.todo[turn] = w.todo[turn][1:]
		w.had[turn] += next.cost
		w.occupied++
		w.busy += next.cost
		w.after(next.cost, func() {
			w.occupied--
			next.then()
			w.process()
		})
	}
}

// event makes a delivery to the receiver.
func (w *world) event(to *receiver) {
	p := change.PendingDelivery{
		ID: publicid.NewDelivery(), Webhook: to.webhook, Organization: to.organization, EventType: to.eventType,
	}
	d := &delivery{to: to, pending: p, created: time.Now(), attempt: 1}
	to.all = append(to.all, d)
	w.work(ours, perRequest, func() { w.offer(d) })
}

func (w *world) offer(d *delivery) {
	p := d.pending
	if w.off.turns {
		p.Organization = publicid.Organization{}
	}
	d.to.queued[p.ID] = d
	if !w.queue.Add(p, w.lags(p.Webhook), time.Now()) {
		delete(d.to.queued, p.ID)
		d.to.refused++
		return
	}
	w.startMore()
}

func (w *world) lags(webhook publicid.Webhook) bool {
	if !w.off.failures && !w.off.demand {
		return w.limits.Lags(webhook)
	}
	w.limits.mu.Lock()
	defer w.limits.mu.Unlock()
	own := w.limits.all.Of[webhook]
	return own != nil && (!w.off.failures && own.failures > w.rules.toleratedFailures ||
		!w.off.demand && w.limits.all.Counts[webhook] > w.rules.webhookConcurrency)
}

func (w *world) startMore() {
	if w.starting < startsAtOnce && w.queue.Size() > 0 {
		w.starting++
		w.startNext()
	}
}

// startNext does the work of a goroutine of the dispatcher.
func (w *world) startNext() {
	now := time.Now()
	if now.Before(w.away) {
		w.after(w.away.Sub(now), w.startNext)
		return
	}
	group, wait := w.queue.Take(groupMax, now)
	if due := now.Add(wait); wait > 0 && (w.wakeAt.IsZero() || due.Before(w.wakeAt)) {
		w.wakeAt = due
		w.after(wait, func() { w.wakeAt = time.Time{}; w.startMore() })
	}
	if group == nil {
		w.starting--
		return
	}
	var runs []*run
	byOwner := map[publicid.Organization]*run{}
	for _, p := range group {
		key := p.Organization
		if !w.off.sharedGroups {
			key = publicid.Organization{}
		}
		if byOwner[key] == nil {
			byOwner[key] = &run{world: w}
			runs = append(runs, byOwner[key])
		}
		to := w.webhooks[p.Webhook]
		byOwner[key].all = append(byOwner[key].all, to.queued[p.ID])
		delete(to.queued, p.ID)
	}
	left := len(runs)
	for _, r := range runs {
		w.workflows++
		w.work(temporals, roundOf(r.all, beforeRound), func() {
			r.began = time.Now()
			r.first()
			if left--; left == 0 {
				w.startNext()
			}
		})
	}
}
