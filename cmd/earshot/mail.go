package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"

	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/subscribers"
)

func newMailCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "mail", Short: "Say what became of e-mails to end-users"}
	cmd.AddCommand(newMailBounceCommand())
	return cmd
}

func newMailBounceCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "bounce [ADDRESS…]",
		Short: "Send no more e-mail to addresses that bounced",
		Long: "Suppresses addresses for all organizations. Without arguments, it reads one address per line from standard input.\n" +
			"Only hashes of the addresses are kept. The command needs the EARSHOT_EMAIL_HASH_KEY of the service.",
	}
	cmd.RunE = withAdmin(func(cmd *cobra.Command, args []string, a *admin) error {
		key, err := config.LoadEmailHashKey(os.Environ())
		if err != nil {
			return err
		}
		mailed, err := subscribers.New(a.store, change.NewRunner(a.store, nil, nil, change.Settings{}), subscribers.Settings{EmailHashKey: key})
		if err != nil {
			return err
		}
		if len(args) == 0 {
			if args, err = lines(cmd.InOrStdin()); err != nil {
				return err
			}
		}
		n, err := mailed.Bounced(cmd.Context(), args)
		if err != nil {
			return inWords(err)
		}
		if asJSON {
			return printJSON(cmd.OutOrStdout(), map[string]int{"suppressed": n})
		}
		fmt.Fprintf(cmd.OutOrStdout(), "suppressed %d more; a person who opts in again by a link in an e-mail gets e-mail again\n", n)
		return nil
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// lines returns the lines that aren't empty.
func lines(of io.Reader) (all []string, err error) {
	scanner := bufio.NewScanner(of)
	for scanner.Scan() {
		if line := strings.TrimSpace(scanner.Text()); line != "" {
			all = append(all, line)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, errors.Wrap(err, "read the addresses")
	}
	return all, nil
}
