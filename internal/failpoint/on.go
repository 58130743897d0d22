//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// armed maps each armed point to the number of hits left until the kill.
var armed = read(os.Getenv(Variable))

// read panics on invalid input, because a run whose point is never reached would prove nothing.
func read(text string) map[Point]*atomic.Int64 {
	points := map[Point]*atomic.Int64{}
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		name, times, _ := strings.Cut(part, "=")
		n, err := strconv.ParseInt(times, 10, 64)
		if err != nil || n < 1 || !slices.Contains(Points, Point(name)) {
			panic(fmt.Sprintf("%s: %q is not the name of a point and a number, as in %s=1", Variable, part, AfterCommit))
		}
		points[Point(name)] = &atomic.Int64{}
		points[Point(name)].Store(n)
	}
	return points
}

// Hit kills the process if the point is armed and this is the hit with the given number.
func Hit(p Point) {
	left, ok := armed[p]
	if !ok || left.Add(-1) != 0 {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal may come a moment later, and nothing may happen before it
}
