package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"earshot/internal/searchattributes"
	"earshot/worker"
)

func newTemporalCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "temporal", Short: "Prepare Temporal"}
	var file string
	setup := &cobra.Command{
		Use:   "setup",
		Short: "Register the search attributes in the namespace",
		Long: "Registers the search attributes that deliveries need and the namespace lacks. TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and\n" +
			"the other variables of Temporal's clients choose where. Repeating it is harmless.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			wanted := worker.NeededAttributes()
			if file != "" {
				var err error
				if wanted, err = searchattributes.Read(file); err != nil {
					return err
				}
			}
			o, err := temporalOptions(os.Environ(), slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			c, err := client.DialContext(cmd.Context(), o)
			if err != nil {
				return errors.Wrap(err, "reach Temporal (TEMPORAL_ADDRESS chooses where)")
			}
			defer c.Close()
			added, err := searchattributes.SetUp(cmd.Context(), c, o.Namespace, wanted)
			if err != nil {
				return err
			}
			for _, name := range added {
				fmt.Fprintln(cmd.OutOrStdout(), "registered", name)
			}
			if len(added) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "every search attribute is registered")
			}
			return nil
		},
	}
	setup.Flags().StringVar(&file, "file", "", "a list of search attributes instead of the program's own, such as temporal-dev.yaml")
	cmd.AddCommand(setup)
	return cmd
}
