package main

import (
	"context"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"
)

// The load never ends by itself here, as without Postgres.
func TestAServerThatCannotBeStartedAgainEndsTheRandomFaults(t *testing.T) {
	t.Parallel()
	broken := errors.New("not ready")
	for name, healthyRounds := range map[string]int{"in the first round": 0, "in a later round": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kills := 0
			kill := func(context.Context) error {
				if kills++; kills > healthyRounds {
					return broken
				}
				return nil
			}
			cut := func(context.Context) error { return nil }
			err := faultsUntil(t.Context(), t.Context(), time.Millisecond, []fault{kill}, []fault{cut, cut})
			require.ErrorIs(t, err, broken)
		})
	}
}
