// Command notrun lists the tests that were skipped because a tool is missing, with the command that
// installs it. It reads the output of `go test -json`:
//
//	notrun .earshot/results/test.json
//
// The output also contains results from Go's cache.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-faster/errors"

	"earshot/internal/needs"
	"earshot/internal/testkit/tier"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: notrun FILE")
		os.Exit(2)
	}
	if err := list(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "notrun: %v\n", err)
		os.Exit(1)
	}
}

// list writes a line for each missing tool.
func list(file string, to io.Writer) error {
	f, err := os.Open(file)
	if err != nil {
		return errors.Wrap(err, "open the results of the tests")
	}
	defer func() { _ = f.Close() }()
	tests, packages := map[string]int{}, map[string]int{}
	for d := json.NewDecoder(f); ; {
		var event struct{ Test, Output string }
		err := d.Decode(&event)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Wrap(err, "read the results of the tests")
		}
		_, tool, is := strings.Cut(strings.TrimSpace(event.Output), tier.NotRun)
		switch {
		case is && event.Test == "":
			packages[tool]++
		case is:
			tests[tool]++
		}
	}
	for _, t := range needs.Tools {
		if n := tests[t.Name]; n > 0 {
			tell(to, n, "test", t)
		}
		if n := packages[t.Name]; n > 0 {
			tell(to, n, "package", t)
		}
	}
	return nil
}

func tell(to io.Writer, n int, of string, t needs.Tool) {
	verb := "s need "
	if n == 1 {
		verb = " needs "
	}
	fmt.Fprintf(to, "NOT RUN: %d %s%s%s: %s, or make test INSTALL=1\n", n, of, verb, t.Name, needs.Command([]needs.Tool{t}))
}
