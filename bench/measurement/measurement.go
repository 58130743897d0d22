// Package measurement defines the results of bench as bench stores them in files.
package measurement

// CPU is processor time in milliseconds for each process. Client is the load with its receiver, and
// the parts of a floor that run in the same process.
type CPU struct {
	Service  float64 `json:"service"`
	Postgres float64 `json:"postgres"`
	Temporal float64 `json:"temporal"`
	Client   float64 `json:"client"`
}

// Total returns the time of all processes.
func (c CPU) Total() float64 { return c.Service + c.Postgres + c.Temporal + c.Client }

// Cost is the cost of one event on its way from the REST call to the receiver's answer. It is the
// input of bench/scaling.
type Cost struct {
	// Rate is the number of events a second. It is 0 for a burst and for the idle stack.
	Rate int `json:"rate"`
	// Idle marks the stack without load. The cost is then that of one second, not that of one
	// event.
	Idle      bool    `json:"idle"`
	Delivered bool    `json:"delivered"`
	PerSecond float64 `json:"perSecond"`
	// The median and the 99th percentile of the time to arrive, in milliseconds.
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	// Workflows is the number of deliver_webhooks workflows for one event, 1/60 at best.
	Workflows float64 `json:"workflows"`
	CPU
	// The bytes of write-ahead log and the transactions in Earshot's database.
	WALBytes float64 `json:"walBytes"`
	Commits  float64 `json:"commits"`
}
