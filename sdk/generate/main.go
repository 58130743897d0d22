// Generate writes the parts of the SDKs that follow from the contract: `go run ./sdk/generate`.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-faster/errors"
)

// languages are the generators. Each returns files by their paths below sdk.
var languages = map[string]func(*API) (map[string][]byte, error){
	"go":         golang,
	"python":     python,
	"typescript": typescript,
}

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
	changelog, err := os.ReadFile(filepath.Join(filepath.Dir(contract), "CHANGELOG.md"))
	if err != nil {
		return errors.Wrap(err, "read the changelog")
	}
	for _, language := range slices.Sorted(maps.Keys(languages)) {
		files, err := languages[language](api)
		if err != nil {
			return errors.Wrap(err, language)
		}
		files[filepath.Join(language, "CHANGELOG.md")] = changelog // a package contains only files below its directory
		for path, text := range files {
			if err := os.WriteFile(filepath.Join(out, path), text, 0o644); err != nil { //nolint:gosec // source code, which everybody may read
				return errors.Wrap(err, language)
			}
		}
	}
	return nil
}
