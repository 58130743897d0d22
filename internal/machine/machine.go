// Package machine tells how busy the machine is, or the container, that a process runs on.
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

// every is how long an answer holds. Processor time is counted in ticks of
// 10 ms: over less than some of them there is only noise.
const every = 200 * time.Millisecond

// controlGroup is where a container with a limit finds it, and what it uses.
const controlGroup = "/sys/fs/cgroup"

// Usage tells how much of its memory and its processor time the machine, or the
// container, uses. Its zero value is ready for use.
type Usage struct {
	mu     sync.Mutex
	at     time.Time
	memory float64
	busy   float64
}

// MemoryUsage is the share of the memory in use, 0 to 1.
func (m *Usage) MemoryUsage(*worker.SysInfoContext) (float64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.look()
	return m.memory, err
}

// CpuUsage is the share of the processor time in use since the answer before, 0 to
// 1. It is the whole machine's in a container too.
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

// ContainerMemory is the share of a container's limit in use, without the file
// cache that the kernel can take back. Limited says that there is a limit.
func ContainerMemory(group string) (share float64, limited bool) {
	limit, ok := number(group+"/memory.max", "")
	if !ok || limit == 0 {
		return 0, false
	}
	current, ok := number(group+"/memory.current", "")
	cache, _ := number(group+"/memory.stat", "inactive_file ")
	return max(0, current-cache) / limit, ok
}

// number is the one after a prefix, in the line that has it.
func number(file, prefix string) (float64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
			n, err := strconv.ParseFloat(rest, 64)
			return n, err == nil // without a limit it says "max"
		}
	}
	return 0, false
}
