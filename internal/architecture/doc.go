// Package architecture contains only tests. They enforce the rule of docs/architecture.md about
// imports between packages.
package architecture
