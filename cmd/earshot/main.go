// Command earshot runs the service and manages it: the API, the worker, database migrations,
// organizations and API keys. It also runs a whole stack on a developer's machine. Each command has
// its own file.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// After the first signal the default handling applies again, so a second signal kills the
	// process.
	context.AfterFunc(ctx, stop)
	if err := newRootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "earshot:", err)
		os.Exit(1)
	}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "earshot",
		Short: "Product feedback with webhooks that arrive",
		Long: "Earshot collects product feedback and tells other systems about it by signed webhooks.\n" +
			"`earshot up` runs everything on this machine; `earshot serve` is for production.",
		Version: builtFrom().Version,
		// A usage error prints its message and not a page of help.
		SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(
		newUpCommand(), newDownCommand(), newResetCommand(),
		newServeCommand(), newWorkerCommand(), newHealthCommand(), newSettingsCommand(), newMigrateCommand(), newTemporalCommand(),
		newOrgCommand(), newMemberCommand(), newKeyCommand(), newContactsCommand(), newAuditCommand(), newMailCommand(), newSecretsCommand(), newListenCommand(), newTriggerCommand(), newMCPCommand(),
		newVersionCommand(),
	)
	return root
}
