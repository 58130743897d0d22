package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-faster/errors"
	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"earshot/internal/devstack"
)

func newResetCommand() *cobra.Command {
	var (
		dir string
		yes bool
	)
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Remove the data of `earshot up`, after stopping it",
		Long: "Stops the stack if it runs and removes its database, Temporal's history, the API keys, the secrets,\n" +
			"the logs and the e-mails. The built programs (bin) stay.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := findStateDir(dir, os.Environ())
			if err != nil {
				return err
			}
			if _, err := os.Stat(string(d)); os.IsNotExist(err) {
				fmt.Fprintf(cmd.OutOrStdout(), "There is nothing in %s\n", shortPath(string(d)))
				return nil
			}
			if !yes {
				if err := confirm(cmd.InOrStdin(), cmd.OutOrStdout(), d); err != nil {
					return err
				}
			}
			return reset(cmd.Context(), d, cmd.OutOrStdout())
		},
	}
	addDirFlag(cmd, &dir)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	return cmd
}

// confirm asks for confirmation at the terminal and refuses without one.
func confirm(in io.Reader, out io.Writer, d stateDir) error {
	file, ok := in.(*os.File)
	if !ok || !isatty.IsTerminal(file.Fd()) {
		return errors.Errorf("this removes all data in %s and nobody is here to confirm it: use --yes (make reset YES=1)", shortPath(string(d)))
	}
	fmt.Fprintf(out, "This removes the database, Temporal's history, API keys and secrets in %s.\nType yes to go on: ", shortPath(string(d)))
	answer, _ := bufio.NewReader(in).ReadString('\n') // no input counts as no
	if strings.TrimSpace(answer) != "yes" {
		return errors.New("nothing was removed")
	}
	return nil
}

// reset stops the stack and removes everything that it created.
func reset(ctx context.Context, d stateDir, said io.Writer) error {
	if _, err := bringDown(ctx, d, said); err != nil {
		return err
	}
	lock, holder, err := takeLock(d) // prevents a start during the reset
	if err != nil {
		return err
	}
	if holder != nil {
		return errors.Errorf("somebody started the stack again (%s)", holder)
	}
	defer lock.release()
	if err := devstack.Remove(d.postgres()); err != nil {
		return err
	}
	if err := removeTemporal(d.temporal()); err != nil {
		return err
	}
	for _, path := range []string{
		d.devEnv(), d.secretsEnv(), d.serviceLog(), d.serviceLog() + ".old", d.upLog(), d.upLog() + ".old", d.mail(), d.listenID(),
	} {
		if err := os.RemoveAll(path); err != nil {
			return errors.Wrap(err, "remove")
		}
	}
	fmt.Fprintf(said, "Removed the data in %s\n", shortPath(string(d)))
	return nil
}

// removeTemporal removes the dev server's directory but keeps the process file. On systems without
// a death signal, the next start uses that file to find a server left behind by a killed `up`.
func removeTemporal(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return errors.Wrap(err, "remove")
	}
	for _, entry := range entries {
		if entry.Name() == "temporal.pid" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return errors.Wrap(err, "remove")
		}
	}
	_ = os.Remove(dir) // fails while the process file exists
	return nil
}
