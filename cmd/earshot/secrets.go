package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"

	"earshot/internal/publicid"
	"earshot/internal/webhooks"
)

func newSecretsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "Manage the keys that webhook secrets are sealed with",
		Long: "Webhook secrets and URLs are sealed with the first key of EARSHOT_SECRET_KEYS and opened with all of them.\n" +
			"docs/operating.md has the recipe of a rotation.",
	}
	var asJSON bool
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(newSecretsRotateCommand(&asJSON), newSecretsListCommand(&asJSON))
	return cmd
}

func newSecretsRotateCommand(asJSON *bool) *cobra.Command {
	return &cobra.Command{
		Use:   "rotate",
		Short: "Seal everything anew with the first key",
		Long: "Seals every webhook's secret and URL anew that isn't sealed with the first key of EARSHOT_SECRET_KEYS.\n" +
			"It may run beside the service, be stopped and be repeated. It fails when something is left.",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: withSecrets(func(cmd *cobra.Command, _ []string, a *admin) error {
			r, err := a.webhooks.RotateSecrets(cmd.Context(), func(done int) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%d webhooks are sealed anew\n", done)
			})
			if err != nil {
				return err
			}
			if err := showRotation(cmd.OutOrStdout(), r, *asJSON); err != nil {
				return err
			}
			return whatIsLeft(r)
		}),
	}
}

func showRotation(w io.Writer, r webhooks.Rotation, asJSON bool) error {
	if !asJSON {
		fmt.Fprintf(w, "%d webhooks were sealed anew with %s, %d are left\n", r.Rotated, r.KeyID, r.Left)
		return nil
	}
	shown := map[string]any{"rotated": r.Rotated, "left": r.Left, "keyId": r.KeyID}
	if len(r.Unreadable) > 0 {
		shown["unreadable"] = each(r.Unreadable, publicid.Webhook.String)
	}
	return printJSON(w, shown)
}

// whatIsLeft is nil when every webhook is sealed with the first key.
func whatIsLeft(r webhooks.Rotation) error {
	if len(r.Unreadable) > 0 {
		text := "these webhooks can't be opened, because their key is not in EARSHOT_SECRET_KEYS or they are damaged:"
		for _, id := range r.Unreadable {
			text += "\n  " + id.String()
		}
		return errors.New(text)
	}
	if r.Left > 0 {
		return errors.Errorf("%d webhooks were sealed with another key meanwhile: a process runs that has another one in front; "+
			"restart it and repeat", r.Left)
	}
	return nil
}

func newSecretsListCommand(asJSON *bool) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Show how many webhooks need which key",
		Long: "Shows how many webhooks need which key. A key of EARSHOT_SECRET_KEYS that isn't listed can go.\n" +
			"Without a key are webhooks whose URL isn't sealed yet: `earshot secrets rotate` does that.",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: withSecrets(func(cmd *cobra.Command, _ []string, a *admin) error {
			uses, err := a.webhooks.SecretKeys(cmd.Context())
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), each(uses, func(u webhooks.KeyUse) map[string]any {
					return map[string]any{"keyId": u.Key, "webhooks": u.Webhooks, "readable": u.Readable}
				}))
			}
			t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "KEY\tWEBHOOKS\tREADABLE")
			for _, u := range uses {
				fmt.Fprintf(t, "%s\t%d\t%v\n", u.Key, u.Webhooks, u.Readable)
			}
			return t.Flush()
		}),
	}
}

// each is never nil, so that it is [] in JSON.
func each[T, R any](list []T, of func(T) R) []R {
	all := make([]R, len(list))
	for i, v := range list {
		all[i] = of(v)
	}
	return all
}
