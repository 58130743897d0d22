package main

import (
	"context"
	"fmt"
	"time"

	"earshot/e2e/faults/receiver"
	"earshot/internal/failpoint"
)

const (
	// startBound bounds the time to the first attempt after a kill between commit and start. It
	// counts from the start of the next process.
	startBound = 5 * time.Second
	// redoneBound is for an interrupted attempt: its timeout of 10 s and 5 s more.
	redoneBound = 10*time.Second + 5*time.Second
)

// killBetweenCommitAndStart kills the API directly after a commit. It returns the time from the
// restart to the first attempt.
func (r *run) killBetweenCommitAndStart(ctx context.Context) (time.Duration, error) {
	r.behave(r.probed, receiver.Held)
	defer r.receiver.Release(r.probed.endpoint)
	api := r.stack.apis[0]
	before := api.generation()
	at := api.kill(failpoint.AfterCommit)
	if err := api.awaitReady(ctx, before); err != nil {
		return 0, err
	}
	armed := before + 1
	r.kills.add(api.name, at, api.started(armed))
	// The answer is lost with the process, so this isn't an acknowledged write.
	_, _ = r.probe.writePost(ctx, fmt.Sprintf("Killed behind its commit %d", armed))
	if err := api.awaitDeath(ctx, armed, failpoint.AfterCommit); err != nil {
		return 0, err
	}
	if err := r.awaitHeld(ctx); err != nil {
		return 0, err
	}
	back := api.started(armed + 1)
	took := time.Since(back)
	r.kills.add(api.name+" at "+string(failpoint.AfterCommit), api.ends(armed), back)
	return took, api.awaitReady(ctx, armed)
}

// killDuringAttempt kills both workers while an attempt waits for its answer, and returns the time
// from the kill to the next attempt. With later it uses a second attempt, because the service makes
// first and later attempts in different places.
func (r *run) killDuringAttempt(ctx context.Context, later bool) (time.Duration, error) {
	r.behave(r.probed, receiver.Held)
	defer r.receiver.Release(r.probed.endpoint)
	if later {
		r.behave(r.probed, receiver.Dead)
	}
	post, err := r.probe.writePost(ctx, "Killed while it is sent")
	if err != nil {
		return 0, err
	}
	r.load.acknowledge(post)
	if later {
		err := await(ctx, "the first attempt to fail", func() bool {
			n, err := r.number(ctx, `SELECT count(*) FROM deliveries d 
				WHERE d.webhook_id = $1 AND d.status = 'pending' AND d.attempt_count = 1`, r.probed.id)
			return err == nil && n == 1
		})
		if err != nil {
			return 0, err
		}
		r.behave(r.probed, receiver.Held)
	}
	if err := r.awaitHeld(ctx); err != nil {
		return 0, err
	}
	killed, before := time.Now(), make([]int, len(r.stack.workers))
	for i, w := range r.stack.workers {
		before[i] = w.generation()
		w.kill()
	}
	cutOff := func() bool { return r.receiver.Waiting(r.probed.endpoint) == 0 }
	if err := await(ctx, "the attempt to be cut off", cutOff); err != nil {
		return 0, err
	}
	if err := r.awaitHeld(ctx); err != nil {
		return 0, err
	}
	took := time.Since(killed)
	for i, w := range r.stack.workers {
		r.kills.add(w.name, killed, w.started(before[i]+1))
	}
	return took, nil
}

// awaitHeld waits until the probe's endpoint holds a request.
func (r *run) awaitHeld(ctx context.Context) error {
	return await(ctx, "an attempt to arrive", func() bool { return r.receiver.Waiting(r.probed.endpoint) > 0 })
}

// commitAndStart measures killBetweenCommitAndStart.
func (r *run) commitAndStart(ctx context.Context, f *figures) error {
	var took []time.Duration
	for range r.trials() {
		t, err := r.killBetweenCommitAndStart(ctx)
		if err != nil {
			return err
		}
		r.report("first attempt %s after the restart", t.Round(time.Millisecond))
		if t > startBound {
			f.violation("a delivery whose process was killed between commit and start came %s after the restart", t)
		}
		took = append(took, t)
	}
	f.CommitToStart = spreadOf(took)
	return nil
}

// attempts measures killDuringAttempt, of first attempts and of later ones.
func (r *run) attempts(ctx context.Context, f *figures) error {
	var took []time.Duration
	trials := r.trials()
	if !r.options.short {
		trials++ // As many first attempts as later ones.
	}
	for i := range trials {
		t, err := r.killDuringAttempt(ctx, i%2 == 1)
		if err != nil {
			return err
		}
		r.report("an attempt that was cut off was made again after %s", t.Round(time.Millisecond))
		if t > redoneBound {
			f.violation("an attempt that a kill cut off was made again after %s", t)
		}
		took = append(took, t)
	}
	f.Redone = spreadOf(took)
	return nil
}

// points kills at each failpoint.
func (r *run) points(ctx context.Context, f *figures) error {
	if err := r.killAtPoints(ctx); err != nil || r.options.short {
		return err
	}
	if err := r.quiet(ctx, f); err != nil {
		return err
	}
	if err := r.awaitMails(ctx); err != nil {
		f.violation("%v", err)
	}
	return ctx.Err()
}
