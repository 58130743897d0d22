package fairness

import (
	"context"
	"slices"
	"time"

	"earshot/internal/publicid"
	"earshot/internal/send"
	"earshot/webhook"
)

// This file simulates the later queue, and the parts of the activities and the workflow that use
// the limits.

// run is a run of deliver_webhooks.
type run struct {
	*world
	began time.Time
	all   []*delivery
	armed time.Time
}

func (r *run) first() {
	for _, d := range r.all {
		d.flying = true
	}
	r.round(r.all, nil, nil)
}

// round makes attempts at the same time, as activities.attemptAll does. A first round has no ended
// function.
func (r *run) round(of []*delivery, admitted Admission, ended func()) {
	left, first := len(of), ended == nil
	over := func() {
		if left--; left > 0 {
			return
		}
		r.settle(of)
		if !first {
			ended()
		}
	}
	untilShare := r.later.Wait()
	for _, d := range of {
		d.putOff, d.failed, d.atLeast = false, false, 0
		switch admitted[d.pending.Webhook] {
		case OrganizationShareUsed:
			d.putOff, d.atLeast = true, untilShare
		case WebhookShareUsed:
			d.putOff = true
		case Free:
			wait := SlotWait
			if first {
				wait = r.limits.FirstWait(d.pending.Webhook)
				if r.off.noFirstWait {
					wait = r.rules.firstWait
				}
				if r.off.firstWait {
					wait = 0
				}
			}
			r.admit(d, wait, over)
			continue
		}
		r.after(0, over)
	}
}

// admit takes a slot and then memory within the wait, as activities.admit does.
func (r *run) admit(d *delivery, wait time.Duration, over func()) {
	ctx, cancel := context.WithCancel(r.life)
	if wait > 0 {
		r.after(wait, cancel)
	} else {
		cancel()
	}
	acquire(ctx, r.world, func(ctx context.Context) func() { return r.limits.Acquire(ctx, d.pending.Webhook) }, func(slot func()) {
		if slot == nil {
			d.putOff = true
			over()
			return
		}
		acquire(ctx, r.world, func(ctx context.Context) func() { return r.memory.Acquire(ctx, d.to.organization, d.to.bytes) }, func(room func()) {
			if room == nil {
				slot()
				d.putOff, d.atLeast = true, r.memory.Wait()
				over()
				return
			}
			r.usedMemory += d.to.bytes
			r.peakMemory = max(r.peakMemory, r.usedMemory)
			r.work(ours, halfAttempt, func() { r.attempt(d, func() { r.usedMemory -= d.to.bytes; room(); slot() }, over) })
		})
	})
}

// acquire calls then with a free resource, or later with the resource for which it has waited.
func acquire(ctx context.Context, w *world, get func(context.Context) func(), then func(func())) {
	now, cancel := context.WithCancel(ctx)
	cancel()
	if got := get(now); got != nil || ctx.Err() != nil {
		then(got)
		return
	}
	w.keys++
	go func(key int) {
		got := get(ctx)
		w.keyed(key, 0, func() { then(got) })
	}(w.keys)
}

func (r *run) attempt(d *delivery, release, over func()) {
	r.attempts++
	d.to.attempted(r.world, d)
	duration, ok := d.to.answer(r.world, d)
	r.after(min(duration, send.AttemptTimeout), func() {
		r.limits.Answered(d.pending.Webhook, ok, min(duration, send.AttemptTimeout))
		d.failed, d.ended, d.tried = !ok, ok, time.Now()
		if delay, again := webhook.RetryDelay(d.attempt); !ok && again {
			number := d.attempt + 1
			if r.off.ownRetries {
				number = 0
			}
			d.in = delay + r.limits.ReserveRetry(d.pending.Webhook, number, delay)
		} else {
			d.ended = true
		}
		release()
		r.forget(d, duration)
		r.work(ours, halfAttempt, over)
	})
}

// forget resets the webhook's average if the run leaves out the duration or its average.
func (r *run) forget(d *delivery, duration time.Duration) {
	r.limits.mu.Lock()
	defer r.limits.mu.Unlock()
	switch own := r.limits.all.Of[d.pending.Webhook]; {
	case own == nil:
	case r.off.duration:
		own.duration = 0
	case r.off.average:
		own.duration = duration
	}
}

// settle does the work of activities.putOff, and then handles the results as the workflow does.
func (r *run) settle(of []*delivery) {
	behind := map[publicid.Webhook]int{}
	for _, d := range of {
		if d.putOff {
			behind[d.pending.Webhook]++
		}
	}
	waits := map[publicid.Webhook]time.Duration{}
	atLeast := map[publicid.Webhook]time.Duration{}
	for _, d := range of {
		hook := d.pending.Webhook
		if _, known := waits[hook]; d.putOff && !known {
			waits[hook] = flatWait
			if !r.off.backlog {
				waits[hook] = r.limits.ReserveBacklog(hook, behind[hook])
			}
		}
		atLeast[hook] = max(atLeast[hook], d.atLeast)
	}
	now := time.Now()
	r.work(temporals, roundOf(of, afterRound), func() {
		for _, d := range of {
			d.flying = false
			switch hook := d.pending.Webhook; {
			case d.putOff:
				r.putOffs++
				if d.wanted.IsZero() {
					d.wanted = now
				}
				d.at = r.due(now.Add(max(waits[hook], atLeast[hook])))
			case !d.ended:
				d.attempt++
				d.at = r.due(d.tried.Add(d.in))
				d.wanted = d.tried.Add(d.in)
			}
		}
		r.goOn()
	})
}

// due rounds a time up to a whole second of the run's age, as the workflow does.
func (r *run) due(at time.Time) time.Time {
	age := at.Sub(r.began)
	if whole := age.Truncate(time.Second); whole < age && !r.off.wholeSeconds {
		age = whole + time.Second
	}
	return r.began.Add(age)
}

// goOn begins a round with the deliveries that are due, and sets a timer for the others.
func (r *run) goOn() {
	now := time.Now()
	var due []*delivery
	var next time.Time
	for _, d := range r.all {
		switch {
		case d.ended || d.flying:
		case !d.at.After(now):
			d.flying = true
			due = append(due, d)
		case next.IsZero() || d.at.Before(next):
			next = d.at
		}
	}
	if len(due) > 0 {
		r.rounds++
		r.work(temporals, roundOf(due, beforeRound), func() { r.queueLater(due) })
	}
	if next.IsZero() || next.Equal(r.armed) {
		return
	}
	r.armed = next
	r.timers++
	r.after(next.Sub(now), func() {
		if r.armed.Equal(next) {
			r.armed = time.Time{}
			r.goOn()
		}
	})
}

// queueLater waits for a slot of the later queue's worker. Organizations take turns, because
// Temporal hands out tasks by their fairness keys. A run that several organizations share has no
// key.
func (r *run) queueLater(due []*delivery) {
	var key publicid.Organization
	if !slices.ContainsFunc(r.all, func(d *delivery) bool { return d.to.organization != r.all[0].to.organization }) && !r.off.fairnessKeys {
		key = r.all[0].to.organization
	}
	at := slices.IndexFunc(r.lines, func(l line) bool { return l.key == key })
	if at < 0 {
		at, r.lines = len(r.lines), append(r.lines, line{key: key})
	}
	r.lines[at].rounds = append(r.lines[at].rounds, func() {
		webhooks := make([]publicid.Webhook, len(due))
		for i, d := range due {
			webhooks[i] = d.pending.Webhook
		}
		admitted, leave := r.later.Admit(webhooks, r.owners)
		r.round(due, admitted, func() {
			leave()
			r.running--
			r.beginLater()
		})
	})
	r.beginLater()
}

type line struct {
	key    publicid.Organization
	rounds []func()
}

func (w *world) beginLater() {
	for w.running < laterGroups && len(w.lines) > 0 {
		first := w.lines[0]
		w.lines = w.lines[1:]
		if len(first.rounds) > 1 {
			w.lines = append(w.lines, line{first.key, first.rounds[1:]})
		}
		w.running++
		first.rounds[0]()
	}
}
