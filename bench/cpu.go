package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of /proc/stat, USER_HZ, which is 100 on every Linux that Go
// runs on.
const tick = 10 * time.Millisecond

// cpuMeter measures the processor time of the whole machine without this
// program's: API, worker, Postgres, Temporal and the kernel's share. What else
// runs on the machine counts too.
type cpuMeter struct{ machine, own time.Duration }

func startCPU() cpuMeter { return cpuMeter{machine: machineCPU(), own: ownCPU()} }

// perOperation is 0 where the system doesn't tell.
func (m cpuMeter) perOperation(n int) time.Duration {
	now := machineCPU()
	if n == 0 || now == 0 {
		return 0
	}
	return (now - m.machine - (ownCPU() - m.own)) / time.Duration(n)
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// machineCPU sums user, nice, system, irq and softirq of the first line.
func machineCPU() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	var ticks int64
	for _, i := range []int{1, 2, 3, 6, 7} {
		if i < len(fields) {
			n, _ := strconv.ParseInt(fields[i], 10, 64)
			ticks += n
		}
	}
	return time.Duration(ticks) * tick
}
