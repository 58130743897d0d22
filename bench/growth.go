package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/go-faster/errors"

	"earshot/bench/seeding"
)

const (
	// The factor between the two sizes.
	growthFactor = 10
	// The limit for the cost at the larger size, as a multiple of the cost at the smaller size.
	growthMost = 1.5
	growthFile = "bench/growth.md"
)

// grown returns the scenarios whose cost could depend on the number of rows. They run in the
// organization that grows.
func (s *stack) grown(o options) []subject {
	var all []subject
	for _, b := range append(s.rest(o), s.arrivals(o)[0]) {
		if b.name != voteFew { // needs no seeded votes
			all = append(all, b)
		}
	}
	return all
}

// measureGrowth seeds a tenth of the rows, then all rows, and prints the cost of each operation at
// both sizes. It returns an error if a cost grows by more than growthMost.
func (s *stack) measureGrowth(ctx context.Context, o options) error {
	own := s.tenant
	defer func() { s.tenant = own }()
	sizes := []seeding.Size{seeding.Full.Times(o.scale / growthFactor), seeding.Full.Times(o.scale)}
	costs := make([]map[string][]measured, len(sizes))
	for i, size := range sizes {
		if s.seeded != nil {
			if err := s.tidySeeded(ctx); err != nil {
				return err
			}
			s.seeded = nil
		}
		if err := seeding.Fill(ctx, s.at.database, size, os.Stderr); err != nil {
			return err
		}
		if err := s.openSeeded(ctx, size); err != nil {
			return err
		}
		s.tenant = s.seeded.tenant
		costs[i] = map[string][]measured{}
		for range o.runs {
			for _, b := range s.grown(o) {
				if !strings.Contains(b.name, o.only) {
					continue
				}
				fmt.Fprintf(os.Stderr, "%d posts: %s\n", size.Posts, b.name)
				m, err := s.once(ctx, o, b)
				if err != nil {
					return err
				}
				costs[i][b.name] = append(costs[i][b.name], m)
			}
		}
	}
	t, beyond := growthTable(s.grown(o), costs[0], costs[1])
	t.print(os.Stdout)
	if o.write {
		if err := s.writeGrowth(ctx, sizes, t); err != nil {
			return err
		}
	}
	if len(beyond) > 0 {
		return errors.Errorf("at %d times the rows these cost more than %.1f times as much: %s", growthFactor, growthMost, strings.Join(beyond, ", "))
	}
	return nil
}

func growthTable(subjects []subject, before, after map[string][]measured) (t table, beyond []string) {
	t = table{{"milliseconds of processor time", "at a tenth", "at all", "ratio"}}
	for _, b := range subjects {
		if len(before[b.name]) == 0 {
			continue
		}
		small, large := median(before[b.name]).CPU.Total(), median(after[b.name]).CPU.Total()
		t = append(t, []string{b.name, ms(small), ms(large), ms(large / small)})
		if large/small > growthMost {
			beyond = append(beyond, b.name)
		}
	}
	return t, beyond
}

func (s *stack) writeGrowth(ctx context.Context, sizes []seeding.Size, t table) error {
	machine, err := s.machine(ctx)
	if err != nil {
		return err
	}
	return writeFile(growthFile, fmt.Sprintf(`# Growth

Written by `+"`make bench ARGS=\"-growth -write\"`"+`. %s

What an operation takes of all processes together, in an organization of %d contacts, %d posts and %d votes on one of them, and in one of
%d contacts, %d posts and %d votes. At ten times the rows it may cost 1.5 times as much.

%s`, machine, sizes[0].Contacts, sizes[0].Posts, sizes[0].Votes, sizes[1].Contacts, sizes[1].Posts, sizes[1].Votes, t.markdown()))
}
