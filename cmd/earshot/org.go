package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"earshot/internal/access"
)

func newOrgCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "org", Short: "Manage organizations"}
	var (
		in     access.NewOrganization
		asJSON bool
	)
	create := &cobra.Command{
		Use:   "create NAME",
		Short: "Make an organization with its owner",
		Args:  cobra.ExactArgs(1),
		RunE: withAdmin(func(cmd *cobra.Command, args []string, a *admin) error {
			in.Name = args[0]
			org, owner, err := a.access.CreateOrganization(cmd.Context(), in)
			if err != nil {
				return inWords(err)
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]any{
					"id": org.ID, "name": org.Name, "plan": org.Plan,
					"owner": map[string]any{"id": owner.ID, "email": owner.Email, "name": owner.Name},
				})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s  %s (%s), owner %s\nnext: earshot key create --org %s\n",
				org.ID, org.Name, org.Plan, owner.Email, org.ID)
			return nil
		}),
	}
	f := create.Flags()
	// Self-hosted organizations get the business plan by default, so that they meet no cap
	// (docs/decisions/billing-and-plans.md).
	f.StringVar(&in.Plan, "plan", "business", "free, pro or business")
	f.StringVar(&in.OwnerEmail, "owner-email", "owner@example.com", "e-mail address of the first member, the owner, whom API keys act as")
	f.StringVar(&in.OwnerName, "owner-name", "Owner", "name of the first member")
	f.StringVar(&in.Slug, "slug", "", "its name in the addresses of its public boards; without one it is its id")
	f.BoolVar(&in.SubscriberMailsAllowed, "subscriber-mails-allowed", false, "whether it may e-mail its end-users, which leaves by your mail server")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	_ = create.RegisterFlagCompletionFunc("plan", cobra.FixedCompletions([]string{"free", "pro", "business"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(create, newOrgUpdateCommand())
	return cmd
}
