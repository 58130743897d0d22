// Package architecture has no code: its tests hold the rule of docs/architecture.md
// about which package may import which.
package architecture
