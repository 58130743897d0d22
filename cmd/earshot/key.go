package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"

	"earshot/ent/db"
	"earshot/internal/access"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

func newKeyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "key", Short: "Manage API keys"}
	var (
		org    string
		asJSON bool
	)
	create, list := newKeyCreateCommand(&org, &asJSON), newKeyListCommand(&org, &asJSON)
	for _, c := range []*cobra.Command{create, list} {
		c.Flags().StringVar(&org, "org", "", "id of the organization; may be left out when there is only one")
	}
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(create, list, newKeyRevokeCommand(&asJSON))
	return cmd
}

func newKeyCreateCommand(org *string, asJSON *bool) *cobra.Command {
	var (
		in      access.NewAPIKey
		member  string
		expires time.Duration
	)
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make an API key and show it, once",
		Args:  cobra.NoArgs,
		RunE: withAdmin(func(cmd *cobra.Command, _ []string, a *admin) error {
			o, owner, err := a.organization(cmd.Context(), *org)
			if err != nil {
				return inWords(err)
			}
			ctx := postgres.WithOrganization(cmd.Context(), o.ID)
			if in.User, err = a.memberOr(ctx, member, owner); err != nil {
				return inWords(err)
			}
			if cmd.Flags().Changed("expires-in") {
				at := time.Now().Add(expires)
				in.ExpiresAt = &at
			}
			secret, key, err := a.access.CreateAPIKey(ctx, in)
			if err != nil {
				return inWords(err)
			}
			if *asJSON {
				shown := keyJSON(key)
				shown["key"] = secret
				return printJSON(cmd.OutOrStdout(), shown)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n%s (%s, %s); the key is shown only now\n", secret, key.ID, key.Name, key.Scope)
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringVar(&in.Name, "name", "command line", "name of the key, such as its purpose")
	f.StringVar(&in.Scope, "scope", "read:write", "read or read:write")
	f.StringVar(&member, "member", "", "id or e-mail address of the member whom the key acts as; the oldest owner when left out")
	f.DurationVar(&expires, "expires-in", 0, "how long the key is valid, as 720h; for ever when left out")
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{"read", "read:write"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func newKeyListCommand(org *string, asJSON *bool) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List an organization's API keys",
		Args:  cobra.NoArgs,
		RunE: withAdmin(func(cmd *cobra.Command, _ []string, a *admin) error {
			o, _, err := a.organization(cmd.Context(), *org)
			if err != nil {
				return inWords(err)
			}
			keys, err := everyPage(postgres.WithOrganization(cmd.Context(), o.ID), a.access.APIKeys)
			if err != nil {
				return err
			}
			if *asJSON {
				all := make([]map[string]any, len(keys))
				for i, k := range keys {
					all[i] = keyJSON(k)
				}
				return printJSON(cmd.OutOrStdout(), all)
			}
			t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "ID\tNAME\tKEY\tSCOPE\tSTATE\tLAST USED")
			for _, k := range keys {
				fmt.Fprintf(t, "%s\t%s\t%s…\t%s\t%s\t%s\n", k.ID, oneLine(k.Name), k.Prefix, k.Scope, keyState(k), moment(k.LastUsedAt))
			}
			return t.Flush()
		}),
	}
}

// everyPage reads all pages of a list.
func everyPage[T any](ctx context.Context, read func(context.Context, page.Query) (page.Page[T], error)) ([]T, error) {
	var all []T
	for q := (page.Query{}); ; {
		p, err := read(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, p.Items...)
		if q.Cursor = p.NextCursor; q.Cursor == nil {
			return all, nil
		}
	}
}

func newKeyRevokeCommand(asJSON *bool) *cobra.Command {
	keepCreated := false
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Make an API key useless, within a second, with the keys that it created",
		Args:  cobra.ExactArgs(1),
		RunE: withAdmin(func(cmd *cobra.Command, args []string, a *admin) error {
			id, err := publicid.Parse[publicid.APIKey](args[0])
			if err != nil {
				return errors.Errorf("%s is not the id of an API key; `earshot key list` shows them", args[0])
			}
			ctx, err := postgres.InOrganizationOf(cmd.Context(), a.store, id)
			if db.IsNotFound(err) {
				return inWords(problem.Missing("API key"))
			}
			if err != nil {
				return err
			}
			key, err := a.access.RevokeAPIKey(ctx, id, keepCreated)
			if err != nil {
				return inWords(err)
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), keyJSON(key))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s (%s) is revoked since %s\n", key.ID, oneLine(key.Name), moment(key.RevokedAt))
			return nil
		}),
	}
	cmd.Flags().BoolVar(&keepCreated, "keep-created", false, "keep the keys that were created or rotated with this one")
	return cmd
}

func keyJSON(k *db.APIKey) map[string]any {
	return map[string]any{
		"id": k.ID, "organizationId": k.OrganizationID, "memberId": k.UserID, "createdByKeyId": k.CreatedByKeyID, "name": k.Name, "prefix": k.Prefix, "scope": k.Scope,
		"state": keyState(k), "createdAt": k.CreatedAt, "expiresAt": access.KeyEnds(k),
		"lastUsedAt": k.LastUsedAt, "revokedAt": k.RevokedAt,
	}
}

func keyState(k *db.APIKey) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked"
	case access.KeyEnds(k) != nil && !access.KeyEnds(k).After(time.Now()):
		return "expired"
	default:
		return "valid"
	}
}

// oneLine removes control characters, which a terminal would interpret. API callers choose the
// names of keys.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

func moment(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.Local().Format(time.DateTime)
}
