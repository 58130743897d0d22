package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"

	"earshot/dispatch"
	"earshot/ent/db"
	"earshot/ent/db/contactbackfill"
	"earshot/internal/backfill"
	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/contacts"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

const (
	// handOver bounds the attempt of the command to start the workflow. A sweep starts it a minute
	// later otherwise.
	handOver = 5 * time.Second
	// pollInterval is the polling interval of a waiting command.
	pollInterval = 500 * time.Millisecond
)

func newBackfillCommand() *cobra.Command {
	var (
		org, before    string
		detach, asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "backfill FILE.csv",
		Short: "Make contacts of people who acted on public boards before they were asked for an opt-in",
		Long: "Reads e-mail addresses that you know from elsewhere: the column email and, if you like, name; - is stdin. Makes a contact for\n" +
			"each of them that has a vote, post or comment on a public board before --before, and no contact. You give the addresses,\n" +
			"because the service keeps only hashes of them. The new contacts have the basis legacy_inferred, so they get no marketing.\n" +
			"The service keeps nothing of the other addresses. The backfill continues if you stop this command. The command needs the\n" +
			"EARSHOT_SECRET_KEYS and EARSHOT_EMAIL_HASH_KEY of the service.",
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"csv"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	cmd.RunE = withSecrets(scopedTo(&org, func(cmd *cobra.Command, args []string, a *admin) error {
		wanted, err := readWanted(cmd, args[0], before)
		if err != nil {
			return err
		}
		service, made, err := a.beginBackfill(cmd.Context(), *wanted)
		if err != nil {
			return err
		}
		if !detach {
			return waitForBackfill(cmd, service, made, asJSON)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "the backfill runs by itself; earshot contacts backfill status %s shows its progress\n", made.ID)
		return showBackfill(cmd, made, made.Addresses, asJSON)
	}))
	f := cmd.Flags()
	f.StringVar(&org, "org", "", "id of the organization; may be left out when there is only one")
	f.StringVar(&before, "before", "", "only activity before this moment counts, as 2026-03-12 or 2026-03-12T00:00:00Z; use the date on which the opt-in box went live")
	f.BoolVar(&detach, "detach", false, "don't wait for the end")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	_ = cmd.MarkFlagRequired("before")
	cmd.AddCommand(newBackfillStatusCommand())
	return cmd
}

func newBackfillStatusCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "status ID",
		Short:             "Show the progress and the result of a backfill",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: withAdmin(func(cmd *cobra.Command, args []string, a *admin) error {
			id, err := publicid.Parse[publicid.ContactBackfill](args[0])
			if err != nil {
				return errors.Errorf("%s is not the id of a backfill", args[0])
			}
			service := backfill.New(a.store, nil, nil, nil) // needs only the store to read
			found, left, err := lookAtBackfill(cmd.Context(), service, id)
			if err != nil {
				return inWords(err)
			}
			return showBackfill(cmd, found, left, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// readWanted reads the file and prints the lines without a valid address before the backfill
// begins.
func readWanted(cmd *cobra.Command, name, before string) (*backfill.Wanted, error) {
	at, err := time.Parse(time.DateOnly, before)
	if err != nil {
		given, err := momentOf("before", &before)
		if err != nil {
			return nil, err
		}
		at = *given
	}
	in := cmd.InOrStdin()
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, errors.Wrap(err, "open the file")
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	people, bad, err := readPeople(in)
	if err != nil {
		return nil, err
	}
	for _, line := range bad[:min(len(bad), maxBadLines)] {
		fmt.Fprintln(cmd.ErrOrStderr(), line)
	}
	if len(bad) > maxBadLines {
		fmt.Fprintf(cmd.ErrOrStderr(), "and %d more\n", len(bad)-maxBadLines)
	}
	return &backfill.Wanted{Before: at, People: people, Invalid: len(bad)}, nil
}

// beginBackfill stores the addresses and starts the workflow. If the start fails, the sweep starts
// it later.
func (a *admin) beginBackfill(ctx context.Context, w backfill.Wanted) (*backfill.Service, *db.ContactBackfill, error) {
	key, err := config.LoadEmailHashKey(os.Environ())
	if err != nil {
		return nil, nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	o, err := temporalOptions(os.Environ(), quiet)
	if err != nil {
		return nil, nil, err
	}
	connection := dispatch.NewConnection(o)
	defer connection.Close()
	d := dispatch.New(connection, 1, quiet)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOver)
		defer cancel()
		d.Close(ctx)
	}()
	changes := change.NewRunner(a.store, d, a.secrets, change.Settings{})
	of := contacts.New(a.store, changes, contacts.Settings{EmailHashKey: key})
	service := backfill.New(a.store, changes, of, a.secrets)
	made, err := service.Begin(ctx, w)
	return service, made, err
}

// waitForBackfill prints the progress until the backfill ends. Interrupting the command doesn't
// stop the backfill.
func waitForBackfill(cmd *cobra.Command, service *backfill.Service, made *db.ContactBackfill, asJSON bool) error {
	fmt.Fprintf(cmd.ErrOrStderr(), "%s looks for %d addresses\n", made.ID, made.Addresses)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for told := made.Addresses; ; {
		select {
		case <-cmd.Context().Done():
			return errors.Errorf("the backfill continues by itself; earshot contacts backfill status %s shows its progress", made.ID)
		case <-tick.C:
		}
		found, left, err := lookAtBackfill(cmd.Context(), service, made.ID)
		if err != nil {
			if cmd.Context().Err() != nil {
				continue
			}
			return err
		}
		if left != told {
			fmt.Fprintf(cmd.ErrOrStderr(), "%d of %d\n", found.Addresses-left, found.Addresses)
			told = left
		}
		if found.Status == contactbackfill.StatusRunning {
			continue
		}
		if err := showBackfill(cmd, found, left, asJSON); err != nil {
			return err
		}
		if found.Status == contactbackfill.StatusCanceled {
			return errors.New("the backfill was canceled")
		}
		return nil
	}
}

func lookAtBackfill(ctx context.Context, service *backfill.Service, id publicid.ContactBackfill) (*db.ContactBackfill, int, error) {
	found, err := service.Backfill(ctx, id)
	if problem.Is(err, problem.NotFound) {
		return nil, 0, errors.Errorf("there is no backfill %s", id)
	}
	if err != nil {
		return nil, 0, err
	}
	left, err := service.Left(ctx, found)
	return found, left, err
}

func showBackfill(cmd *cobra.Command, b *db.ContactBackfill, left int, asJSON bool) error {
	p := backfill.ProgressOf(b, left)
	if asJSON {
		return printJSON(cmd.OutOrStdout(), map[string]any{
			"id": b.ID, "organizationId": b.OrganizationID, "status": p.Status, "before": b.ActiveBefore,
			"addresses": p.Addresses, "left": p.Left, "matched": p.Matched, "created": p.Created, "existed": p.Existed,
			"leftOut": p.LeftOut, "invalid": p.Invalid, "createdAt": b.CreatedAt, "finishedAt": b.FinishedAt,
		})
	}
	printBackfill(cmd.OutOrStdout(), b, p)
	return nil
}

func printBackfill(to io.Writer, b *db.ContactBackfill, p backfill.Progress) {
	fmt.Fprintf(to, "%s  %s: %d of %d addresses looked for, %d with activity before %s\n",
		b.ID, p.Status, p.Addresses-p.Left, p.Addresses, p.Matched, b.ActiveBefore.UTC().Format(time.RFC3339))
	fmt.Fprintf(to, "%d contacts created, %d were there, %d left out without room in the plan; %d lines were no addresses\n",
		p.Created, p.Existed, p.LeftOut, p.Invalid)
}
