package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func newMigrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema up to date",
		Long:  "Applies the migrations that DATABASE_URL lacks. Several at once wait for each other; repeating it is harmless.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := openStore(os.Environ())
			if err != nil {
				return err
			}
			defer s.Close()
			applied, err := s.Migrate(cmd.Context())
			if err != nil {
				return err
			}
			for _, name := range applied {
				fmt.Fprintln(cmd.OutOrStdout(), "applied", name)
			}
			if len(applied) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "the schema is up to date")
			}
			return nil
		},
	}
}
