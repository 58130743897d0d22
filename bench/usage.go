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

// meters measure the processes of the stack. A process that isn't found counts as zero: it runs on
// another machine, or as a user that we may not inspect.
type meters struct {
	service, postgres, temporal *process.Process
	// postgresTotal is the processor time of all Postgres processes so far, and postgresBefore the
	// time of each process at the last reading, by pid.
	postgresTotal  float64
	postgresBefore map[int32]float64
	// postgresPeak is the largest memory of all Postgres processes together at the end of a run, in
	// bytes.
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

// listener returns the process that listens on a port of this machine, or nil if none is visible.
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

// missing returns the names of the processes that aren't measured.
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

// cpu returns the processor time of each part. The time of Postgres counts from the first reading.
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

// addPostgres adds the processor time of the Postgres processes since the last reading. A plain sum
// over the current processes would fall when one of them ends.
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

// childrenOf reads the children of a process from Linux directly if possible, because the library
// scans all processes.
func childrenOf(ctx context.Context, p *process.Process) []*process.Process {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.Pid, p.Pid))
	if err != nil {
		children, _ := p.ChildrenWithContext(ctx) // having no children is an error too
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

// memory is the peak memory of each process in bytes, or 0 if the system doesn't report it.
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

// notePostgres adds up the memory of the Postgres processes. Shared memory is divided among the
// processes that share it.
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

// statusLine reads a value in kilobytes from a file about a process, and returns it in bytes.
func statusLine(pid int32, file, label string) uint64 {
	return procLine("/proc/"+strconv.Itoa(int(pid))+"/"+file, label)
}

// procLine reads a value in kilobytes from a file, and returns it in bytes.
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
