// Package machine reports how busy the machine or the container of a process is.
package machine

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-faster/errors"
	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/mem"
	"go.temporal.io/sdk/worker"
)

// every is the time for which a reading stays valid. Processor time is counted in ticks of 10 ms,
// so a shorter interval would measure only noise.
const every = 200 * time.Millisecond

// controlGroup is the directory in which a container finds its limits and its usage.
const controlGroup = "/sys/fs/cgroup"

// Usage reports the share of memory and processor time that the machine or the container uses. Its
// zero value is ready for use.
type Usage struct {
	mu     sync.Mutex
	at     time.Time
	memory float64
	busy   float64
}

// MemoryUsage returns the share of memory in use, from 0 to 1.
func (m *Usage) MemoryUsage(*worker.SysInfoContext) (float64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.look()
	return m.memory, err
}

// CpuUsage returns the share of processor time in use since the previous reading, from 0 to 1. In a
// container it still covers the whole machine.
func (m *Usage) CpuUsage(*worker.SysInfoContext) (float64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.look()
	return m.busy, err
}

func (m *Usage) look() error {
	if time.Since(m.at) < every {
		return nil
	}
	busy, err := cpu.Percent(0, false)
	if err != nil {
		return errors.Wrap(err, "read the processors' use")
	}
	memory, limited := ContainerMemory(controlGroup)
	if !limited {
		all, err := mem.VirtualMemory()
		if err != nil {
			return errors.Wrap(err, "read the memory's use")
		}
		memory = all.UsedPercent / 100
	}
	m.at, m.memory, m.busy = time.Now(), memory, busy[0]/100
	return nil
}

// ContainerMemory returns the share of a container's memory limit in use, without the file cache
// that the kernel can reclaim. The result limited is false if there is no limit.
func ContainerMemory(group string) (share float64, limited bool) {
	limit, ok := number(group+"/memory.max", "")
	if !ok || limit == 0 {
		return 0, false
	}
	current, ok := number(group+"/memory.current", "")
	cache, _ := number(group+"/memory.stat", "inactive_file ")
	return max(0, current-cache) / limit, ok
}

// number returns the number after a prefix, from the first line with that prefix.
func number(file, prefix string) (float64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
			n, err := strconv.ParseFloat(rest, 64)
			return n, err == nil // the file contains "max" if there is no limit
		}
	}
	return 0, false
}
