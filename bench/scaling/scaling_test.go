package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheSimulationMatchesTheMeasurementsOfOneMachine(t *testing.T) {
	t.Parallel()
	all, err := load("costs.json")
	require.NoError(t, err)
	c, err := fit(all)
	require.NoError(t, err)
	shown := 0
	for _, row := range compare(all, c) {
		if !row.fitted {
			require.InEpsilon(t, row.measured, row.simulated, 0.2, row.name)
			shown++
		}
	}
	require.Greater(t, shown, 10, "or this shows nothing")
}
