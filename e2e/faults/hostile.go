package main

import (
	"context"
	"slices"
	"time"

	"github.com/go-faster/errors"

	"earshot/e2e/faults/hostile"
	"earshot/internal/publicid"
)

// hostileReceivers is the part with hostile receivers. It has its own stack, because these
// receivers don't write the ledger that the checker reads.
const hostileReceivers = "hostile"

const (
	// hostileTenants is the number of tenants. Each one has a receiver of every kind. With more than
	// twenty kinds, that is three times the concurrent attempts of one webhook.
	hostileTenants = 8
	// hostileEvents warms the processes up before their memory is measured.
	hostileEvents = 100
	// mostGrowth bounds the memory growth of each process, in bytes.
	mostGrowth = 50 << 20
	// attemptBound is the attempt timeout of 10 s plus 1 s for a busy machine.
	attemptBound = 11 * time.Second
	// mostKept bounds the stored part of a response body (specification, Delivery log).
	mostKept = 16 << 10
)

// hostileFigures has the figures of the part with hostile receivers.
type hostileFigures struct {
	Kinds int `json:"kinds"`
	// Deliveries counts those that ended as expected, and Attempts their attempts.
	Deliveries int `json:"deliveries"`
	Attempts   int `json:"attempts"`
	// Longest is the longest duration of an attempt.
	Longest time.Duration `json:"longest"`
	// Growth is the largest memory growth of each process, in bytes. If it couldn't be measured,
	// LeftOut has the reason.
	Growth  map[string]int64 `json:"growth,omitempty"`
	LeftOut string           `json:"leftOut,omitempty"`
}

func (h hostileFigures) rows(row func(name, format string, args ...any)) {
	row("hostile receivers", "%d kinds, %d deliveries that ended as they should after %d attempts, none longer than %s (bound %s)",
		h.Kinds, h.Deliveries, h.Attempts, h.Longest.Round(time.Millisecond), attemptBound)
	for _, name := range sortedKeys(h.Growth) {
		row("memory beside them: "+name, "grew by %.1f MiB at most (bound %d)", mebibytes(h.Growth[name]), mostGrowth>>20)
	}
	if h.LeftOut != "" {
		row("memory beside them", "left out: %s", h.LeftOut)
	}
}

// target is a webhook whose receiver is hostile.
type target struct {
	hostile.Kind
	webhook  publicid.Webhook
	receiver *hostile.Receiver
}

// onHostile sends an event to every kind of receiver at the same time and waits until all
// deliveries have ended.
func onHostile(
	ctx context.Context, o options, dir, program string, f *figures, progress func(string, ...any),
) (err error) {
	r, err := open(ctx, o, dir, program, progress)
	if err != nil {
		return err
	}
	defer func() { r.close(f.anything(ctx, err)) }()
	if err := f.versions(ctx, r); err != nil {
		return err
	}
	if err := r.load.until(ctx, hostileEvents); err != nil {
		return err
	}
	if err := r.quiet(ctx, f); err != nil {
		return err
	}
	tenants, targets, err := r.openHostile(ctx)
	defer func() {
		for _, t := range targets {
			t.receiver.Close()
		}
	}()
	if err != nil {
		return err
	}
	f.Hostile.Kinds = len(targets) / len(tenants)
	progress("part %s: an event to %d webhooks at once", hostileReceivers, len(targets))
	if err := r.markMemory(f); err != nil {
		return err
	}
	for _, t := range tenants {
		if _, err := t.writePost(ctx, "Idea"); err != nil {
			return errors.Wrap(err, "create a post")
		}
	}
	if err := r.quiet(ctx, f); err != nil {
		return err
	}
	if err := r.measureMemory(f); err != nil {
		return err
	}
	for _, t := range targets {
		if err := r.judge(ctx, t, f); err != nil {
			return err
		}
	}
	f.count(r)
	if f.Unasked > 0 {
		f.violation("%d processes ended by themselves", f.Unasked)
	}
	return nil
}

// openHostile makes tenants with a webhook for each kind of receiver. The caller closes the
// returned receivers, even after an error.
func (r *run) openHostile(ctx context.Context) (tenants []*tenant, targets []target, err error) {
	kinds, err := hostile.Kinds()
	if err != nil {
		return nil, nil, err
	}
	n := hostileTenants
	if r.options.short {
		n = 1
	}
	for range n {
		t, err := r.newTenant(ctx, "hostile", r.stack.url)
		if err != nil {
			return tenants, targets, err
		}
		tenants = append(tenants, t)
		for _, k := range kinds {
			receiver, err := k.Open()
			if err != nil {
				return tenants, targets, err
			}
			h, err := t.register(ctx, receiver.URL, postCreated)
			targets = append(targets, target{Kind: k, webhook: h.id, receiver: receiver})
			if err != nil {
				return tenants, targets, err
			}
		}
	}
	return tenants, targets, nil
}

// markMemory starts the measurement of each process's memory. If the system can't measure it, the
// figures record the reason.
func (r *run) markMemory(f *figures) error {
	f.Hostile.Growth = map[string]int64{}
	for _, p := range r.stack.services {
		now, err := p.forgetPeak()
		if err != nil {
			f.Hostile.LeftOut, f.Hostile.Growth = err.Error(), nil
			return nil
		}
		f.Hostile.Growth[p.name] = -now
	}
	return nil
}

func (r *run) measureMemory(f *figures) error {
	if f.Hostile.Growth == nil {
		return nil
	}
	for _, p := range r.stack.services {
		peak, err := p.peak()
		if err != nil {
			return err
		}
		f.Hostile.Growth[p.name] += peak
		if grown := f.Hostile.Growth[p.name]; grown > mostGrowth {
			f.violation("%s grew by %.1f MiB beside hostile receivers, the bound is %d", p.name, mebibytes(grown), mostGrowth>>20)
		}
	}
	return nil
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// judge compares the result of a webhook's delivery with the expected result for its kind.
func (r *run) judge(ctx context.Context, t target, f *figures) error {
	status, wanted := "succeeded", 1
	if t.Error != "" {
		status, wanted = "failed", maxAttempts
	}
	var (
		right, attempts, kept int
		errs                  []string
		took                  time.Duration
	)
	err := r.ask(ctx, []any{&right, &attempts, &kept, &errs, &took}, `
		SELECT count(DISTINCT d.id) FILTER (WHERE d.status = $2), count(*), coalesce(max(octet_length(a.response_body)), 0),
			coalesce(array_agg(DISTINCT coalesce(a.error, '')), '{}'), coalesce(max(a.duration_ms), 0) * interval '1 ms'
		FROM deliveries d JOIN attempts a ON a.delivery_id = d.id WHERE d.webhook_id = $1`, t.webhook, status)
	if err != nil {
		return err
	}
	f.Hostile.Deliveries += right
	f.Hostile.Attempts += attempts
	f.Hostile.Longest = max(f.Hostile.Longest, took)
	if right != 1 || attempts != wanted || !slices.Equal(errs, []string{t.Error}) {
		f.violation("%s: %d deliveries %s after %d attempts, with the errors %q; 1 after %d, with %q, is right",
			t.Name, right, status, attempts, errs, wanted, t.Error)
	}
	if n := t.receiver.Accepted(); n != int64(attempts) {
		f.violation("%s: %d connections for %d attempts", t.Name, n, attempts)
	}
	if took > attemptBound || kept > mostKept {
		f.violation("%s: an attempt took %s, and %d bytes of an answer were kept", t.Name, took, kept)
	}
	return nil
}
