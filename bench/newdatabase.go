package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-faster/errors"
)

const (
	// The number of bursts before ANALYZE. The third one begins with 10,000 deliveries, which
	// Postgres has no statistics about until autovacuum runs, up to a minute later.
	newBursts = 3
	// The last of these bursts must reach this share of the speed after ANALYZE. On a quiet
	// machine, two bursts of the same kind differ by less than a tenth.
	newLeast = 0.9
	// One of this many tries must reach newLeast, each on another new database, because another
	// load on the machine can slow down any single burst.
	newTries = 3
)

// measureNewDatabase measures bursts on a new database, and one more burst after ANALYZE. It
// returns an error if the last burst before ANALYZE was too slow in relation to the one after it.
func measureNewDatabase(ctx context.Context, o options) error {
	for try := 1; ; try++ {
		share, err := newDatabaseOnce(ctx, o)
		if err != nil {
			return err
		}
		if share >= newLeast {
			return nil
		}
		if try == newTries {
			return errors.Errorf("burst %d on a new database had %.2f of the speed after ANALYZE, and at least %.2f is wanted: "+
				"does the service still make statistics (internal/postgres/statistics.go)?", newBursts, share, newLeast)
		}
		fmt.Fprintln(os.Stderr, "too slow: measuring again, because a neighbour may have come")
	}
}

// newDatabaseOnce returns the speed of the last burst before ANALYZE as a share of the speed after
// it.
func newDatabaseOnce(ctx context.Context, o options) (share float64, err error) {
	at, stop, err := startService(ctx)
	if err != nil {
		return 0, err
	}
	defer stop()
	s, err := open(ctx, at)
	if err != nil {
		return 0, err
	}
	defer func() {
		if closed := s.close(); err == nil {
			err = closed
		}
	}()
	t := table{{"burst", "deliveries a second", "p50", "p99", "CPU of Postgres, ms each", "CPU of all, ms each"}}
	measure := func(name string) (float64, error) {
		m, err := s.deliveredInBurst(ctx, o)
		if err != nil {
			return 0, errors.Wrap(err, name)
		}
		t = append(t, []string{name, fmt.Sprintf("%.0f", m.PerSecond), brief(m.P50), brief(m.P99), ms(m.CPU.Postgres), ms(m.CPU.Total())})
		return m.PerSecond, nil
	}
	var before, after float64
	for i := range newBursts {
		if before, err = measure(fmt.Sprintf("%d of %d posts", i+1, o.posts)); err != nil {
			return 0, err
		}
	}
	if _, err := s.pool.Exec(ctx, "ANALYZE"); err != nil {
		return 0, errors.Wrap(err, "make statistics of all tables")
	}
	if after, err = measure("after ANALYZE"); err != nil {
		return 0, err
	}
	share = before / after
	t = append(t, []string{"share", fmt.Sprintf("%.2f", share), "", "", "", ""})
	t.print(os.Stdout)
	return share, nil
}
