package main

import (
	"context"
	"path/filepath"
	"time"

	"earshot/e2e/faults/check"
	"earshot/e2e/faults/outside"
)

// stepTime bounds the wait for a copy to be in step after the load is quiet.
const stepTime = 30 * time.Second

// outsideFigures has the figures of the outsiders.
type outsideFigures struct {
	Interactions int `json:"interactions"`
	Confirmed    int `json:"confirmed"`
	Links        int `json:"links"`
	Left         int `json:"left"`
	Copied       int `json:"copied"`
	Pages        int `json:"pages"`
}

// judge compares the outsiders' records with the service, and acknowledges the changes that they
// made. Call it only when no delivery is pending.
func (o *outsiders) judge(ctx context.Context, f *figures) error {
	for _, err := range o.broken {
		f.violation("outside: %v", err)
	}
	o.broken = nil
	seen, err := o.api.Look(ctx, o.place.Board, o.place.On)
	if err != nil {
		return err
	}
	first, err := o.mailbox.First()
	if err != nil {
		return err
	}
	now, err := outside.NewMailbox(filepath.Join(o.run.dir, "mail")).Now()
	if err != nil {
		return err
	}
	var interactions []outside.Interaction
	for _, w := range o.interactions {
		interactions = append(interactions, *w)
	}
	made, violations := outside.Judge(interactions, first, now, seen)
	for _, v := range violations {
		f.violation("outside: %s", v)
	}
	o.acknowledge(made)
	if err := o.inStep(ctx, f); err != nil {
		return err
	}
	f.Outside = o.figures(interactions, now)
	return nil
}

// acknowledge gives the checker the confirmed interactions, so that it checks their events and
// deliveries.
func (o *outsiders) acknowledge(made outside.Made) {
	for kind, event := range map[outside.Kind]string{outside.Post: postCreated, outside.Vote: voteCreated, outside.Comment: commentCreated} {
		for _, id := range made[kind] {
			if !o.acknowledged[id] {
				o.acknowledged[id] = true
				o.run.load.acknowledge(written{id, event})
			}
		}
	}
}

func (o *outsiders) figures(interactions []outside.Interaction, letters map[string]outside.Letter) outsideFigures {
	f := outsideFigures{Interactions: len(interactions), Left: len(o.gone), Copied: o.copy.Rows(), Pages: o.copy.Pages}
	for _, w := range interactions {
		if w.Confirmed {
			f.Confirmed++
		}
	}
	for _, letter := range letters {
		if letter.Link != "" {
			f.Links++
		}
	}
	return f
}

// inStep checks that the copy equals the list after it has caught up.
func (o *outsiders) inStep(ctx context.Context, f *figures) error {
	until := time.Now().Add(stepTime)
	for {
		if err := o.copy.CatchUp(ctx); err != nil {
			return err
		}
		differs, err := o.copy.Differs(ctx)
		if err != nil {
			return err
		}
		if len(differs) == 0 {
			return nil
		}
		if time.Now().After(until) {
			for _, line := range differs {
				f.violation("outside: %s", line)
			}
			return nil
		}
		if err := pause(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// erased returns the erased persons for the checker.
func (o *outsiders) erased() (e check.Erased) {
	if o == nil {
		return e
	}
	e.Texts = []string{outside.Mark}
	for _, g := range o.gone {
		e.Hashes = append(e.Hashes, hashOf(g.Email))
		e.Subjects = append(e.Subjects, g.Subjects...)
	}
	return e
}

func (f outsideFigures) rows(row func(name, format string, args ...any)) {
	if f.Interactions == 0 {
		return
	}
	row("end-users", "%d forms filled in, %d links mailed, %d confirmed", f.Interactions, f.Links, f.Confirmed)
	row("exported and erased", "%d persons", f.Left)
	row("copy kept in step", "%d posts by %d pages", f.Copied, f.Pages)
}
