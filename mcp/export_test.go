package mcp

import "time"

// Reached is what a tool's action reaches.
type Reached struct{ Tool, Action, Operation string }

// Table is the table of tools, a row for each action.
func Table() (rows []Reached) {
	for _, t := range table {
		for _, a := range t.actions {
			rows = append(rows, Reached{t.name, a.name, a.operation})
		}
	}
	return rows
}

// Snake is how a name of the contract is written in a tool.
func Snake(name string) string { return snake(name) }

// MaxAnswer is the size of a page, in bytes.
const MaxAnswer = maxAnswer

// RetryAfter is what the bridge reads from a header.
func RetryAfter(header string, now time.Time) (seconds int, ok bool) { return retryAfter(header, now) }
