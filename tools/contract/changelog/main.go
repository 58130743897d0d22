// Changelog updates the section of a version in the contract's changelog. It reads the differences
// that oasdiff found, as JSON, from standard input. `.ci/contract` calls it and passes the
// versions.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	check := flag.Bool("check", false, "write nothing, and fail where there is something to write")
	version := flag.String("version", "", "the contract's version")
	released := flag.String("released", "", "the version of the last release; empty before there is any")
	flag.Parse()
	if err := run(flag.Arg(0), *version, *released, *check); err != nil {
		fmt.Fprintln(os.Stderr, "changelog:", err)
		os.Exit(1)
	}
}

func run(file, version, released string, check bool) error {
	var changes []change
	if err := json.NewDecoder(os.Stdin).Decode(&changes); err != nil {
		return fmt.Errorf("read the differences: %w", err)
	}
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	text, err := renew(string(old), version, released, changes)
	if err != nil || text == string(old) {
		return err
	}
	if check {
		return fmt.Errorf("%s lacks differences since the last release: run make contract-changelog", file)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}
