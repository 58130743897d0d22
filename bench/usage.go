package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	gopsnet "github.com/shirou/gopsutil/v4/net"
	"github.com/shirou/gopsutil/v4/process"

	"earshot/bench/measurement"
)

// meters look at the processes of the stack. One that isn't found counts as nothing: it runs
// on another machine, or as a user whom we may not look at.
type meters struct {
	service, postgres, temporal *process.Process
	// postgresTotal is what the processes of Postgres have taken, and postgresBefore what each
	// had at the last reading, by pid.
	postgresTotal  float64
	postgresBefore map[int32]float64
	// postgresPeak is the most that its processes had together at the end of a run, in bytes.
	postgresPeak uint64
}

func openMeters(ctx context.Context, at addresses) (*meters, error) {
	m := &meters{}
	for _, p := range []struct {
		into **process.Process
		url  string
	}{
		{&m.service, at.api}, {&m.postgres, at.database}, {&m.temporal, "grpc://" + at.temporal},
	} {
		u, err := url.Parse(p.url)
		if err != nil {
			return nil, errors.Wrap(err, "read an address of the stack")
		}
		if *p.into, err = listener(ctx, u.Port()); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// listener is the process that listens on the port of this machine, nil if nobody is seen to.
func listener(ctx context.Context, port string) (*process.Process, error) {
	number, err := strconv.ParseUint(port, 10, 32)
	if err != nil {
		return nil, errors.Wrap(err, "read a port of the stack")
	}
	sockets, err := gopsnet.ConnectionsWithContext(ctx, "tcp")
	if err != nil {
		return nil, errors.Wrap(err, "list who listens")
	}
	for _, c := range sockets {
		if c.Status == "LISTEN" && c.Laddr.Port == uint32(number) && c.Pid != 0 {
			p, err := process.NewProcessWithContext(ctx, c.Pid)
			if err != nil {
				return nil, errors.Wrap(err, "find a process of the stack")
			}
			return p, nil
		}
	}
	return nil, nil //nolint:nilnil // see meters
}

// missing names the processes that aren't measured.
func (m *meters) missing() string {
	var names []string
	for _, p := range []struct {
		name string
		of   *process.Process
	}{{"the service", m.service}, {"Postgres", m.postgres}, {"Temporal", m.temporal}} {
		if p.of == nil {
			names = append(names, p.name)
		}
	}
	return strings.Join(names, ", ")
}

// cpu is what everything has taken since the meters were opened.
func (m *meters) cpu(ctx context.Context) (c measurement.CPU, err error) {
	for _, p := range []struct {
		into *float64
		of   *process.Process
	}{
		{&c.Service, m.service}, {&c.Temporal, m.temporal},
	} {
		if p.of == nil {
			continue
		}
		if *p.into, err = cpuOf(ctx, p.of); err != nil {
			return c, err
		}
	}
	m.addPostgres(ctx)
	c.Postgres, c.Client = m.postgresTotal, milliseconds(ownCPU())
	return c, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func cpuOf(ctx context.Context, p *process.Process) (float64, error) {
	times, err := p.TimesWithContext(ctx)
	if err != nil {
		return 0, errors.Wrap(err, "read a process's times")
	}
	return (times.User + times.System) * 1000, nil
}

// addPostgres adds what its processes took since the reading before. They come and go, so a sum of
// what there is would fall when one ends.
func (m *meters) addPostgres(ctx context.Context) {
	if m.postgres == nil {
		return
	}
	now := map[int32]float64{}
	for _, p := range append(childrenOf(ctx, m.postgres), m.postgres) {
		taken, err := cpuOf(ctx, p)
		if err != nil {
			continue // it has just ended
		}
		now[p.Pid] = taken
		if m.postgresBefore != nil {
			m.postgresTotal += max(0, taken-m.postgresBefore[p.Pid])
		}
	}
	m.postgresBefore = now
}

// childrenOf are asked of Linux, where it tells: the library looks at all processes.
func childrenOf(ctx context.Context, p *process.Process) []*process.Process {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.Pid, p.Pid))
	if err != nil {
		children, _ := p.ChildrenWithContext(ctx) // that there are none is an error too
		return children
	}
	var children []*process.Process
	for _, field := range strings.Fields(string(text)) {
		pid, _ := strconv.ParseInt(field, 10, 32)
		children = append(children, &process.Process{Pid: int32(pid)})
	}
	return children
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memory is the most that each process had, in bytes; 0 where the system doesn't tell.
type memory struct {
	Service  uint64 `json:"service"`
	Postgres uint64 `json:"postgres"`
	Temporal uint64 `json:"temporal"`
	Client   uint64 `json:"client"`
}

func (m *meters) memory() memory {
	peak := func(p *process.Process) uint64 {
		if p == nil {
			return 0
		}
		return statusLine(p.Pid, "status", "VmHWM:")
	}
	return memory{peak(m.service), m.postgresPeak, peak(m.temporal), statusLine(int32(os.Getpid()), "status", "VmHWM:")}
}

// notePostgres adds the memory of its processes up, of which each has its share of what they
// have in common.
func (m *meters) notePostgres(ctx context.Context) {
	if m.postgres == nil {
		return
	}
	sum := statusLine(m.postgres.Pid, "smaps_rollup", "Pss:")
	for _, child := range childrenOf(ctx, m.postgres) {
		sum += statusLine(child.Pid, "smaps_rollup", "Pss:")
	}
	m.postgresPeak = max(m.postgresPeak, sum)
}

// statusLine reads a number of kilobytes about a process.
func statusLine(pid int32, file, label string) uint64 {
	return procLine("/proc/"+strconv.Itoa(int(pid))+"/"+file, label)
}

// procLine reads a number of kilobytes out of a file, as bytes.
func procLine(file, label string) uint64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), label)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseUint(fields[0], 10, 64)
	return n * 1024
}
