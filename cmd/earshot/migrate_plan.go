package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"

	"earshot/ent/migrations"
	"earshot/internal/migrate"
	"earshot/internal/postgres"
)

func newMigratePlanCommand(asJSON *bool) *cobra.Command {
	return &cobra.Command{
		Use:   "plan",
		Short: "Show the SQL that `up` would run, and the operations that it would block",
		Long: "Shows the statements of the migrations that the database lacks. For each existing table, it shows the lock of the\n" +
			"statement, the operations that wait for it, and whether the statement reads or rewrites the table. It changes nothing.",
		Args: cobra.NoArgs,
		RunE: withStore(func(cmd *cobra.Command, s *postgres.DB) error {
			p, err := planOf(cmd, s)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]any{"migrations": p})
			}
			showPlan(cmd.OutOrStdout(), p)
			return nil
		}),
	}
}

type plannedMigration struct {
	Name        string             `json:"name"`
	Transaction bool               `json:"transaction"`
	Contract    string             `json:"contract,omitempty"`
	Statements  []plannedStatement `json:"statements"`
}

type plannedStatement struct {
	SQL    string          `json:"sql"`
	Tables []plannedEffect `json:"tables"`
}

// plannedEffect describes the effect of a statement on a table and the table's size in this
// database. A table that an earlier migration of the plan creates has no size yet.
type plannedEffect struct {
	migrate.Effect
	Waits string `json:"waits"`
	Bytes int64  `json:"bytes"`
	Rows  int64  `json:"estimatedRows"`
}

func planOf(cmd *cobra.Command, s *postgres.DB) ([]plannedMigration, error) {
	all, err := migrate.Status(cmd.Context(), s)
	if err != nil {
		return nil, err
	}
	pending := map[string]bool{}
	for _, m := range all {
		pending[m.Name] = m.Pending()
	}
	sizes, err := migrate.TableSizes(cmd.Context(), s)
	if err != nil {
		return nil, err
	}
	files, err := migrate.Files(migrations.FS)
	if err != nil {
		return nil, err
	}
	effects, err := migrate.Recorded()
	if err != nil {
		return nil, err
	}
	plan := []plannedMigration{}
	for _, f := range files {
		if !pending[f.Name] {
			continue
		}
		if len(effects[f.Name]) != len(f.Statements) {
			return nil, errors.Errorf("the effects of %s aren't recorded: run `make migration`", f.Name)
		}
		m := plannedMigration{Name: f.Name, Transaction: f.Transaction, Contract: f.Contract}
		for i, sql := range f.Statements {
			m.Statements = append(m.Statements, planned(sql, effects[f.Name][i], sizes))
		}
		plan = append(plan, m)
	}
	return plan, nil
}

func planned(sql string, effects []migrate.Effect, sizes map[string]migrate.TableSize) plannedStatement {
	p := plannedStatement{SQL: sql, Tables: []plannedEffect{}}
	for _, e := range effects {
		size := sizes[e.Table]
		p.Tables = append(p.Tables, plannedEffect{Effect: e, Waits: e.Waits(), Bytes: size.Bytes, Rows: size.Rows})
	}
	return p
}

func showPlan(w io.Writer, plan []plannedMigration) {
	if len(plan) == 0 {
		fmt.Fprintln(w, "the schema is up to date: nothing to do")
		return
	}
	for _, m := range plan {
		until := "statement by statement, locks until the end of each"
		if m.Transaction {
			until = "in one transaction, locks until its end"
		}
		fmt.Fprintf(w, "%s: %s\n", m.Name, until)
		if m.Contract != "" {
			fmt.Fprintf(w, "  removes parts of the schema that are %s\n", m.Contract)
		}
		for _, s := range m.Statements {
			fmt.Fprintf(w, "\n  %s\n", strings.ReplaceAll(s.SQL, "\n", "\n  "))
			for _, t := range s.Tables {
				fmt.Fprintf(w, "    → %s\n", t.inWords())
			}
		}
		if m.Transaction {
			m.showTogether(w)
		}
		fmt.Fprintln(w)
	}
}

// showTogether prints the strongest lock that a transaction holds on each table at its end. Even a
// lock of a short statement is held while later statements read whole tables.
func (m plannedMigration) showTogether(w io.Writer) {
	strongest := map[string]plannedEffect{}
	for _, s := range m.Statements {
		for _, t := range s.Tables {
			if was, ok := strongest[t.Table]; !ok || t.Stronger(was.Effect) {
				strongest[t.Table] = t
			}
		}
	}
	if len(strongest) == 0 {
		return
	}
	fmt.Fprint(w, "\n  Together, until the end:\n")
	for _, name := range slices.Sorted(maps.Keys(strongest)) {
		fmt.Fprintf(w, "    %s: %s\n", name, strongest[name].Waits)
	}
}

// inWords formats the effect as a line of the plan.
func (e plannedEffect) inWords() string {
	line := fmt.Sprintf("%s: %s, %s", e.Table, e.Lock, e.Waits)
	switch {
	case e.Rewrites:
		line += "; writes the whole table anew"
	case e.Reads:
		line += "; reads the whole table"
	case e.Lock == "ROW EXCLUSIVE":
		line += "; looks for rows to change"
	default:
		return line + "; takes a moment"
	}
	return line + fmt.Sprintf(", %.1f MB with about %d rows", float64(e.Bytes)/1e6, e.Rows)
}
