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

// requested are the points between the commit of a change and the hand-over of its request about a job, by
// the workflow and the signal of the request.
var requested = map[[2]string]Point{
	{"confirm_interaction", ""}:          AfterAsk,
	{"confirm_interaction", "confirmed"}: AfterConfirmation,
}

// HitRequest is Hit for the point of a request, if it has one.
func HitRequest(workflow, signal string) {
	if p, ok := requested[[2]string{workflow, signal}]; ok {
		Hit(p)
	}
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
