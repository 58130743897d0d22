package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"earshot/internal/config"
)

func newSettingsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "settings",
		Short: "List the settings, with their defaults",
		Long: "Lists what can be set in the environment. NAME_FILE names a file with the value of NAME instead, which\n" +
			"is the way for secrets. Nothing that is set now is shown; the service logs that at its start.",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return printJSON(cmd.OutOrStdout(), config.Settings())
			}
			t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "SETTING\tDEFAULT\t")
			for _, s := range config.Settings() {
				value := s.Default
				if s.Required {
					value = "(required)"
				}
				fmt.Fprintf(t, "%s\t%s\t%s\n", s.Name, value, s.Help)
			}
			return t.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
