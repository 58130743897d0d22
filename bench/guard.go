package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"
)

const (
	guardFile = "bench/guard.json"
	// A ratio below this part of the committed one fails.
	guardLeast = 2.0 / 3
	// Rounds and their length: the median of so many short ratios moves less than that of
	// few long ones, because a neighbour that comes and goes disturbs only some of them.
	guardRounds = 5
	guardPeriod = 700 * time.Millisecond
	guardPosts  = 500
	guardTries  = 3
)

// guarded are scenarios that everything else goes through, each with the floor it is held to.
var guarded = []struct{ scenario, floor string }{
	{postNoWebhook, floorPost},
	{identifyUnchanged, floorIdentify},
	{postDelivered, floorEvent},
}

// ratio is a scenario beside its floor.
type ratio struct {
	// Speed is operations a second by those of the floor, Work the floor's processor time by
	// the operation's.
	Speed float64 `json:"speed"`
	Work  float64 `json:"work"`
}

// measureGuard measures the guarded scenarios and their floors in alternation, on a service of
// its own, and returns an error when one has become slower beside its floor than it may.
func measureGuard(ctx context.Context, o options) (err error) {
	at, stop, err := startService(ctx)
	if err != nil {
		return err
	}
	defer stop()
	s, err := open(ctx, at)
	if err != nil {
		return err
	}
	defer func() {
		if closed := s.close(); err == nil {
			err = closed
		}
	}()
	o.period, o.posts = guardPeriod, guardPosts
	all := map[string][]ratio{}
	// What is committed, and what is found to be too slow, is the median of three times as many.
	for try := 1; ; try++ {
		if err := s.guardRounds(ctx, o, all); err != nil {
			return err
		}
		found := map[string]ratio{}
		for name, rounds := range all {
			found[name] = ratio{middle(rounds, func(r ratio) float64 { return r.Speed }), middle(rounds, func(r ratio) float64 { return r.Work })}
		}
		if o.write {
			if try < guardTries {
				continue
			}
			text, err := json.MarshalIndent(found, "", "  ")
			if err != nil {
				return errors.Wrap(err, "encode the ratios")
			}
			return writeFile(guardFile, string(text)+"\n")
		}
		if err := judge(found); err == nil || try == guardTries {
			return err
		}
		fmt.Fprintln(os.Stderr, "too slow: looking again, because a neighbour may have come")
	}
}

func middle(rounds []ratio, of func(ratio) float64) float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// guardRounds runs everything in rounds, and once before the first one to warm up.
func (s *stack) guardRounds(ctx context.Context, o options, all map[string][]ratio) error {
	by := map[string]subject{}
	// A floor takes half of the period.
	twice := o
	twice.period *= 2
	for _, b := range slices.Concat(s.rest(o), s.arrivals(o), s.floors(twice)) {
		by[b.name] = b
	}
	warm := len(all) > 0
	for round := range guardRounds + 1 {
		if round == 0 && warm {
			continue
		}
		for _, g := range guarded {
			floor, err := s.once(ctx, o, by[g.floor])
			if err != nil {
				return err
			}
			m, err := s.once(ctx, o, by[g.scenario])
			if err != nil {
				return err
			}
			if round == 0 {
				continue
			}
			r := ratio{m.PerSecond / floor.PerSecond, floor.CPU.Total() / m.CPU.Total()}
			all[g.scenario] = append(all[g.scenario], r)
			fmt.Fprintf(os.Stderr, "round %d of %d: %-40s %6.0f/s at %.2f ms, floor %6.0f/s at %.2f ms: %.2f of its speed, %.2f of its work\n",
				round, guardRounds, g.scenario, m.PerSecond, m.CPU.Total(), floor.PerSecond, floor.CPU.Total(), r.Speed, r.Work)
		}
	}
	return nil
}

// judge holds the ratios against the committed ones.
func judge(found map[string]ratio) error {
	text, err := os.ReadFile(guardFile)
	if err != nil {
		return errors.Wrap(err, "read the committed ratios")
	}
	committed := map[string]ratio{}
	if err := json.Unmarshal(text, &committed); err != nil {
		return errors.Wrapf(err, "read %s", guardFile)
	}
	t := table{{"of its floor", "speed", "committed", "least", "work", "committed", "least"}}
	var below []string
	for _, g := range guarded {
		f, c := found[g.scenario], committed[g.scenario]
		t = append(t, []string{g.scenario, ms(f.Speed), ms(c.Speed), ms(c.Speed * guardLeast), ms(f.Work), ms(c.Work), ms(c.Work * guardLeast)})
		if f.Speed < c.Speed*guardLeast || f.Work < c.Work*guardLeast {
			below = append(below, g.scenario)
		}
	}
	t.print(os.Stdout)
	if len(below) > 0 {
		return errors.Errorf("slower beside its floor than two thirds of what is committed: %s. If that is on purpose, make bench-guard ARGS=-write",
			strings.Join(below, ", "))
	}
	return nil
}
