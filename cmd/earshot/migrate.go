package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"earshot/ent/migrations"
	"earshot/internal/migrate"
	"earshot/internal/postgres"
)

func newMigrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema up to date",
		Long: "Without a further word, does what `earshot migrate up` does. docs/upgrading.md says in which order\n" +
			"a new version takes over.",
		Args: cobra.NoArgs,
	}
	var asJSON bool
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	up := newMigrateUpCommand(&asJSON)
	cmd.RunE = up.RunE
	cmd.AddCommand(up, newMigrateStatusCommand(&asJSON), newMigratePlanCommand(&asJSON))
	return cmd
}

// withStore runs a command against a database whose schema may be out of date.
func withStore(run func(cmd *cobra.Command, s *postgres.DB) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		s, err := openStore(os.Environ())
		if err != nil {
			return err
		}
		defer s.Close()
		return run(cmd, s)
	}
}

func newMigrateUpCommand(asJSON *bool) *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Apply the migrations that the database lacks",
		Long: "Applies the migrations that the database at DATABASE_URL lacks, while the service runs. Concurrent runs wait for each\n" +
			"other. Repeating the command is harmless, and completes an interrupted run. It reports its waits on stderr.",
		Args: cobra.NoArgs,
		RunE: withStore(func(cmd *cobra.Command, s *postgres.DB) error {
			applied, err := migrate.UpFrom(cmd.Context(), s, migrations.FS, func(line string) {
				fmt.Fprintln(cmd.ErrOrStderr(), line)
			})
			if *asJSON && err == nil {
				return printJSON(cmd.OutOrStdout(), map[string]any{"applied": append([]string{}, applied...)})
			}
			for _, name := range applied {
				fmt.Fprintln(cmd.OutOrStdout(), "applied", name)
			}
			if len(applied) == 0 && err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), "the schema is up to date")
			}
			return err
		}),
	}
}

func newMigrateStatusCommand(asJSON *bool) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show which migrations the database has and lacks",
		Long:  "Shows which migrations the database has, since when, and which it lacks. It changes nothing.",
		Args:  cobra.NoArgs,
		RunE: withStore(func(cmd *cobra.Command, s *postgres.DB) error {
			all, err := migrate.Status(cmd.Context(), s)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), statusOf(all))
			}
			return showStatus(cmd.OutOrStdout(), all)
		}),
	}
}

// schemaStatus is the output of `earshot migrate status --json`.
type schemaStatus struct {
	// Version is the version of the newest applied migration, or 0 for an empty database.
	Version    int64             `json:"version"`
	Pending    int               `json:"pending"`
	Migrations []migrationStatus `json:"migrations"`
}

type migrationStatus struct {
	Version int64 `json:"version"`
	// Name is empty for a migration that only a later version of the program contains.
	Name      string     `json:"name,omitempty"`
	AppliedAt *time.Time `json:"appliedAt"`
}

func statusOf(all []migrate.Migration) schemaStatus {
	s := schemaStatus{Migrations: []migrationStatus{}}
	for _, m := range all {
		if m.Pending() {
			s.Pending++
		} else {
			s.Version = m.Version
		}
		s.Migrations = append(s.Migrations, migrationStatus{Version: m.Version, Name: m.Name, AppliedAt: m.AppliedAt})
	}
	return s
}

func showStatus(w io.Writer, all []migrate.Migration) error {
	s := statusOf(all)
	switch {
	case s.Pending == 0:
		fmt.Fprintf(w, "schema version %d, up to date\n", s.Version)
	case s.Version == 0:
		fmt.Fprintf(w, "no schema yet, %d migrations pending\n", s.Pending)
	default:
		fmt.Fprintf(w, "schema version %d, %d pending: `earshot migrate plan` shows their statements\n", s.Version, s.Pending)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, m := range all {
		at, name := "pending", m.Name
		if !m.Pending() {
			at = "applied " + m.AppliedAt.Format(time.DateTime) + " UTC"
		}
		if name == "" {
			name = fmt.Sprintf("%d, of a later version of the program", m.Version)
		}
		fmt.Fprintf(t, "%s\t%s\n", name, at)
	}
	return t.Flush()
}
