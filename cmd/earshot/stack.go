package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/go-faster/errors"
	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"earshot/internal/devstack"
	"earshot/internal/devstack/commands"
	"earshot/internal/devstack/statedir"
)

func addDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", "", "state directory (default .earshot in the repository; "+statedir.Variable+" sets it too)")
	_ = cmd.MarkFlagDirname("dir")
}

// detachedFlag marks the process that --detach starts.
const detachedFlag = "detached"

func newUpCommand() *cobra.Command {
	var (
		dir                     string
		detach, asJSON, install bool
	)
	o := commands.Options{
		Environ: os.Environ(),
		Serve: func(ctx context.Context, environ []string, logs io.Writer) error {
			return runService(ctx, environ, roleAPI|roleWorker, logs)
		},
		Ready: func(ctx context.Context, baseURL string) error {
			_, err := ask(ctx, baseURL+"/readyz")
			return err
		},
	}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run everything on this machine: Postgres, Temporal, the API and the worker",
		Long: "Starts a private Postgres and a Temporal dev server with its web UI, prepares both, and runs the API\n" +
			"and the worker until Ctrl-C. The data stays; `earshot reset` removes it.\n\n" +
			"Every setting of the service passes through from the environment. The ports are chosen with\n" +
			"EARSHOT_PORT, EARSHOT_POSTGRES_PORT, EARSHOT_METRICS_PORT, EARSHOT_TEMPORAL_PORT and\n" +
			"EARSHOT_TEMPORAL_UI_PORT; 0 is any free one. Where everything is, and API keys,\n" +
			"stand in dev.env in the state directory, for shells to source.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Dir, err = statedir.Find(dir, o.Environ); err != nil {
				return err
			}
			o.Out = cmd.OutOrStdout()
			if install {
				// A detached stack starts in another process, which reads this variable.
				if err := os.Setenv(devstack.InstallVariable, "1"); err != nil {
					return errors.Wrap(err, "permit an installation")
				}
			}
			switch {
			case detach:
				if asJSON {
					o.Out = cmd.ErrOrStderr()
				}
				return upDetached(cmd, o, asJSON)
			case asJSON:
				return errors.New("--json needs --detach: a stack in the foreground has no result")
			}
			return commands.Up(cmd.Context(), o)
		},
	}
	addDirFlag(cmd, &dir)
	f := cmd.Flags()
	f.BoolVarP(&detach, "detach", "d", false, "return when everything answers, and leave it running")
	f.BoolVar(&asJSON, "json", false, "with --detach: print where everything is as JSON, the rest on stderr")
	f.BoolVar(&install, "install", false, "install Postgres with apt-get without asking, where this is root on Debian or Ubuntu and there is none")
	f.BoolVar(&o.Demo, "demo", false, "fill an organization with a realistic product, and receive its webhook")
	f.BoolVar(&o.Detached, detachedFlag, false, "what --detach starts")
	_ = f.MarkHidden(detachedFlag)
	return cmd
}

func upDetached(cmd *cobra.Command, o commands.Options, asJSON bool) error {
	self, err := os.Executable()
	if err != nil {
		return errors.Wrap(err, "find this program")
	}
	args := []string{"up", "--dir", string(o.Dir), "--" + detachedFlag}
	if o.Demo {
		args = append(args, "--demo")
	}
	started, err := commands.UpDetached(cmd.Context(), o, exec.Command(self, args...))
	if err != nil || !asJSON {
		return err
	}
	return printJSON(cmd.OutOrStdout(), started)
}

// downResult is the output of `down --json`.
type downResult struct {
	Status string `json:"status"` // stopped or not_running
	PID    int    `json:"pid,omitempty"`
	Dir    string `json:"dir"`
}

func newDownCommand() *cobra.Command {
	var (
		dir    string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop what `earshot up` runs; the data stays",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := statedir.Find(dir, os.Environ())
			if err != nil {
				return err
			}
			said := cmd.OutOrStdout()
			if asJSON {
				said = cmd.ErrOrStderr()
			}
			stopped, err := commands.Down(cmd.Context(), d, said)
			if err != nil {
				return err
			}
			result := downResult{Status: "not_running", Dir: string(d)}
			if stopped != nil {
				result.Status, result.PID = "stopped", stopped.PID
			} else {
				fmt.Fprintf(said, "Nothing is running in %s\n", statedir.ShortPath(string(d)))
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), result)
			}
			return nil
		},
	}
	addDirFlag(cmd, &dir)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON, the rest on stderr")
	return cmd
}

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
			d, err := statedir.Find(dir, os.Environ())
			if err != nil {
				return err
			}
			if _, err := os.Stat(string(d)); os.IsNotExist(err) {
				fmt.Fprintf(cmd.OutOrStdout(), "There is nothing in %s\n", statedir.ShortPath(string(d)))
				return nil
			}
			if !yes {
				if err := confirm(cmd.InOrStdin(), cmd.OutOrStdout(), d); err != nil {
					return err
				}
			}
			return commands.Reset(cmd.Context(), d, cmd.OutOrStdout())
		},
	}
	addDirFlag(cmd, &dir)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	return cmd
}

// confirm asks for confirmation at the terminal and refuses without one.
func confirm(in io.Reader, out io.Writer, d statedir.Dir) error {
	file, ok := in.(*os.File)
	if !ok || !isatty.IsTerminal(file.Fd()) {
		return errors.Errorf("this removes all data in %s and nobody is here to confirm it: use --yes (make reset YES=1)", statedir.ShortPath(string(d)))
	}
	fmt.Fprintf(out, "This removes the database, Temporal's history, API keys and secrets in %s.\nType yes to go on: ", statedir.ShortPath(string(d)))
	answer, _ := bufio.NewReader(in).ReadString('\n') // no input counts as no
	if strings.TrimSpace(answer) != "yes" {
		return errors.New("nothing was removed")
	}
	return nil
}
