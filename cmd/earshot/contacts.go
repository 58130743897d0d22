package main

import "github.com/spf13/cobra"

func newContactsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "contacts", Short: "Make contacts of addresses that the operator knows"}
	cmd.AddCommand(newBackfillCommand())
	return cmd
}
