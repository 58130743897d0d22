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
	// The guard fails if a ratio falls below this share of the committed ratio.
	guardLeast = 2.0 / 3
	// The number of rounds and their length. The median of many short rounds is more stable than
	// that of a few long ones, because another load on the machine disturbs only some of them.
	guardRounds = 5
	guardPeriod = 700 * time.Millisecond
	guardPosts  = 500
	guardTries  = 3
)

// guarded lists scenarios on the path of every other operation, each with its floor.
var guarded = []struct{ scenario, floor string }{
	{postNoWebhook, floorPost},
	{identifyUnchanged, floorIdentify},
	{postDelivered, floorEvent},
}

// ratio compares a scenario with its floor.
type ratio struct {
	// Speed is the operations a second divided by those of the floor. Work is the floor's processor
	// time divided by the operation's.
	Speed float64 `json:"speed"`
	Work  float64 `json:"work"`
}

// measureGuard measures the guarded scenarios and their floors in alternation, on a separate
// service. It returns an error if a scenario has become too slow in relation to its floor.
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
	// A committed ratio, and a ratio that fails, is the median of three times as many rounds.
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

// guardRounds runs the guarded scenarios in rounds. One warm-up round precedes the first one.
func (s *stack) guardRounds(ctx context.Context, o options, all map[string][]ratio) error {
	by := map[string]subject{}
	// A floor runs for half of the period.
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

// judge compares the ratios with the committed ones.
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
		return errors.Errorf("below two thirds of the committed ratio to the floor: %s. If you intend this, run make bench-guard ARGS=-write",
			strings.Join(below, ", "))
	}
	return nil
}
