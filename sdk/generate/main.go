// Generate writes the SDKs' part that follows from the contract: `go run ./sdk/generate`.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/go-faster/errors"
)

// languages write the model down, each below its own directory of sdk.
var languages = map[string]func(*API) (map[string][]byte, error){}

func main() {
	contract := flag.String("contract", "api/openapi.yaml", "the contract")
	out := flag.String("out", "sdk", "the directory of the SDKs")
	flag.Parse()
	if err := generate(*contract, *out); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate(contract, out string) error {
	doc, err := read(contract)
	if err != nil {
		return err
	}
	api, err := build(doc)
	if err != nil {
		return errors.Wrap(err, "understand the contract")
	}
	_ = out
	for _, r := range api.Resources {
		for _, o := range r.Operations {
			fmt.Println(r.Name, o.Name, o.Kind, o.Result.Type, o.Keyed)
		}
	}
	for _, o := range api.Objects {
		fmt.Println(o.Name, o.Sent, o.Received, len(o.Fields))
	}
	for _, e := range api.Enums {
		fmt.Println(e.Name, e.Values)
	}
	return nil
}
