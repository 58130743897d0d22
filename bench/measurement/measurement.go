// Package measurement is what bench measured of one load, as it stands in files.
package measurement

// CPU is processor time in milliseconds, by process. Client is the load with its receiver, and
// what of a floor runs in it.
type CPU struct {
	Service  float64 `json:"service"`
	Postgres float64 `json:"postgres"`
	Temporal float64 `json:"temporal"`
	Client   float64 `json:"client"`
}

// Total is the time of all processes.
func (c CPU) Total() float64 { return c.Service + c.Postgres + c.Temporal + c.Client }

// Cost is what one event took, on its way from the REST call to the receiver's answer.
// bench/scaling reckons with it.
type Cost struct {
	// Rate is 0 for a burst, as fast as it goes, and for the idle stack.
	Rate int `json:"rate"`
	// Idle is the stack without any load: what a second takes, not an event.
	Idle      bool    `json:"idle"`
	Delivered bool    `json:"delivered"`
	PerSecond float64 `json:"perSecond"`
	// Milliseconds, of the middle and the slowest arrivals.
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	// Workflows of deliver_webhooks for one event: 1/60 at best.
	Workflows float64 `json:"workflows"`
	CPU
	// Of our database: bytes of its log, and transactions.
	WALBytes float64 `json:"walBytes"`
	Commits  float64 `json:"commits"`
}
