package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Variables set by the build of an image or a release (-ldflags "-X main.version=… -X
// main.revision=…").
var version, revision string

// build identifies the source of this program.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// builtFrom returns the values set by the build, or those that Go recorded from the repository.
func builtFrom() build {
	b := build{Version: version, Revision: revision, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	noted, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			noted = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+changed"
		}
	}
	if noted != "" {
		noted += changed
	}
	b.Version = cmp.Or(b.Version, info.Main.Version, "unknown")
	b.Revision = cmp.Or(b.Revision, noted, "unknown")
	return b
}

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Show what this program was built from",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := builtFrom()
			if asJSON {
				return printJSON(cmd.OutOrStdout(), b)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "earshot %s\nrevision %s\nbuilt with %s for %s\n", b.Version, b.Revision, b.Go, b.Platform)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
