package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"earshot/ent/db"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/contacts"
	"earshot/internal/postgres"
	"earshot/internal/privacy"
)

func newMemberCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "member", Short: "Manage the members of an organization"}
	var (
		org    string
		asJSON bool
	)
	cmd.PersistentFlags().StringVar(&org, "org", "", "id of the organization; may be left out when there is only one")
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(newMemberAddCommand(&org, &asJSON), newMemberListCommand(&org, &asJSON), newMemberRemoveCommand(&org, &asJSON), newMemberEraseCommand(&org, &asJSON))
	return cmd
}

// inOrganization runs a command in the organization named by --org.
func inOrganization(org *string, run command) func(*cobra.Command, []string) error {
	return withAdmin(scopedTo(org, run))
}

// scopedTo runs a command in the organization named by a flag, or in the only one in the database.
func scopedTo(org *string, run command) command {
	return func(cmd *cobra.Command, args []string, a *admin) error {
		o, _, err := a.organization(cmd.Context(), *org)
		if err != nil {
			return inWords(err)
		}
		cmd.SetContext(postgres.WithOrganization(cmd.Context(), o.ID))
		return inWords(run(cmd, args, a))
	}
}

func newMemberAddCommand(org *string, asJSON *bool) *cobra.Command {
	var in access.NewMember
	cmd := &cobra.Command{
		Use:   "add EMAIL",
		Short: "Add a member to an organization",
		Args:  cobra.ExactArgs(1),
		RunE: inOrganization(org, func(cmd *cobra.Command, args []string, a *admin) error {
			in.Email = args[0]
			m, err := a.access.EnlistMember(cmd.Context(), in)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), memberJSON(m))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s  %s (%s)\nnext: earshot key create --org %s --member %s\n",
				m.ID, m.Email, *m.Role, m.OrganizationID, m.ID)
			return nil
		}),
	}
	cmd.Flags().StringVar(&in.Name, "name", "", "the member's name")
	cmd.Flags().StringVar(&in.Role, "role", "member", "owner, admin or member")
	_ = cmd.MarkFlagRequired("name")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions([]string{"owner", "admin", "member"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func newMemberListCommand(org *string, asJSON *bool) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List an organization's members",
		Args:  cobra.NoArgs,
		RunE: inOrganization(org, func(cmd *cobra.Command, _ []string, a *admin) error {
			members, err := everyPage(cmd.Context(), a.access.Members)
			if err != nil {
				return err
			}
			if *asJSON {
				all := make([]map[string]any, len(members))
				for i, m := range members {
					all[i] = memberJSON(m)
				}
				return printJSON(cmd.OutOrStdout(), all)
			}
			t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "ID\tE-MAIL\tNAME\tROLE")
			for _, m := range members {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", m.ID, m.Email, oneLine(m.Name), *m.Role)
			}
			return t.Flush()
		}),
	}
}

func newMemberRemoveCommand(org *string, asJSON *bool) *cobra.Command {
	return &cobra.Command{
		Use:   "remove ID|EMAIL",
		Short: "Remove a member and revoke their API keys, within a second",
		Args:  cobra.ExactArgs(1),
		RunE: inOrganization(org, func(cmd *cobra.Command, args []string, a *admin) error {
			m, err := a.member(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := a.access.DelistMember(cmd.Context(), m.ID); err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]any{"id": m.ID})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s (%s) is removed, and the API keys are revoked\n", m.ID, m.Email)
			return nil
		}),
	}
}

func newMemberEraseCommand(org *string, asJSON *bool) *cobra.Command {
	return &cobra.Command{
		Use:   "erase ID|EMAIL",
		Short: "Erase the name and the address of a removed member, for good",
		Long: "Erases the name and the address of a removed member, the hash of the address on votes and comments, and the names of the\n" +
			"member's API keys. Texts, votes and counts stay, under a neutral author. There is no way back.\n" +
			"It needs EARSHOT_EMAIL_HASH_KEY as the service has it.",
		Args: cobra.ExactArgs(1),
		RunE: inOrganization(org, func(cmd *cobra.Command, args []string, a *admin) error {
			id, err := a.removedMember(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			key, err := config.LoadEmailHashKey(os.Environ())
			if err != nil {
				return err
			}
			changes := change.NewRunner(a.store, nil, a.secrets, change.Settings{})
			of := contacts.New(a.store, changes, contacts.Settings{EmailHashKey: key})
			if err := privacy.New(a.store, changes, of, a.secrets).EraseMemberAsOperator(cmd.Context(), id); err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]any{"id": id})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is erased\n", id)
			return nil
		}),
	}
}

func memberJSON(m *db.User) map[string]any {
	return map[string]any{
		"id": m.ID, "organizationId": m.OrganizationID, "email": m.Email, "name": m.Name, "role": *m.Role,
		"createdAt": m.CreatedAt, "updatedAt": m.UpdatedAt,
	}
}
