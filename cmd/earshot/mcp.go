package main

import (
	"os"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"

	"earshot/mcp"
)

func newMCPCommand() *cobra.Command {
	const keyVariable, urlVariable = "EARSHOT_API_KEY", "EARSHOT_BASE_URL"
	var url string
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Offer the agent tools over stdin and stdout, for desktop clients",
		Long: "Connects a client of the Model Context Protocol that starts programs to the service's agent tools.\n" +
			"The API key comes from " + keyVariable + ". Clients that speak HTTP use /mcp of the service itself.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if fromEnv := os.Getenv(urlVariable); fromEnv != "" && !cmd.Flags().Changed("url") {
				url = fromEnv
			}
			key := os.Getenv(keyVariable)
			if key == "" {
				return errors.New(keyVariable + " is missing: set it to an API key of the service")
			}
			b := &mcp.Bridge{URL: url, Key: key, In: cmd.InOrStdin(), Out: cmd.OutOrStdout()}
			return b.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&url, "url", "http://127.0.0.1:4280", "base address of the service ("+urlVariable+" sets it too)")
	return cmd
}
