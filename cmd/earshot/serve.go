package main

import (
	"os"

	"github.com/spf13/cobra"
)

func newServeCommand() *cobra.Command {
	var noWorker bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the API and the worker",
		Long: "Runs the API and the worker in one process. Settings come from the environment;\n" +
			"every problem with them is listed at once. The log goes to stdout.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := roleAPI | roleWorker
			if noWorker {
				r = roleAPI
			}
			return runService(cmd.Context(), os.Environ(), r, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&noWorker, "no-worker", false, "run no worker in this process; `earshot worker` runs it elsewhere")
	return cmd
}

func newWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "worker",
		Short: "Run the worker without the API",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runService(cmd.Context(), os.Environ(), roleWorker, cmd.OutOrStdout())
		},
	}
}
