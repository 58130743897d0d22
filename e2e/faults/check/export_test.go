package check

// RuleNames are those of all rules.
func RuleNames() (names []string) {
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}

// RunIn is Run in a transaction of the caller's.
var RunIn = run
