package main

import "strings"

// lookup has KEY=value pairs. If a name occurs more than once, the last pair counts, as in a
// process.
type lookup []string

// Environ returns all pairs.
func (l lookup) Environ() []string { return l }

// LookupEnv returns the value of a name.
func (l lookup) LookupEnv(name string) (string, bool) {
	for i := len(l) - 1; i >= 0; i-- {
		if key, value, ok := strings.Cut(l[i], "="); ok && key == name {
			return value, true
		}
	}
	return "", false
}
