package check

// RuleNames returns the names of all rules.
func RuleNames() (names []string) {
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}

// RunIn is Run in a transaction of the caller.
var RunIn = run
