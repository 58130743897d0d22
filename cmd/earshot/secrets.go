package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"

	"earshot/internal/publicid"
	"earshot/internal/webhooks"
	"earshot/internal/widget"
)

func newSecretsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "Manage the keys that secrets of webhooks and widgets are sealed with",
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
		Long: "Seals every webhook's secret and URL, and every secret of a widget anew that isn't sealed with the first key of EARSHOT_SECRET_KEYS.\n" +
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
			w, err := a.widget.ResealSecrets(cmd.Context())
			if err != nil {
				return err
			}
			if err := showRotation(cmd.OutOrStdout(), r, w, *asJSON); err != nil {
				return err
			}
			return whatIsLeft(r, w)
		}),
	}
}

func showRotation(to io.Writer, r webhooks.Rotation, w widget.Resealed, asJSON bool) error {
	if !asJSON {
		fmt.Fprintf(to, "%d webhooks were sealed anew with %s, %d are left\n", r.Rotated, r.KeyID, r.Left)
		if w.Done > 0 {
			fmt.Fprintf(to, "%d secrets of widgets were sealed anew\n", w.Done)
		}
		return nil
	}
	shown := map[string]any{"rotated": r.Rotated, "left": r.Left, "keyId": r.KeyID, "widgetSecretsRotated": w.Done}
	if len(r.Unreadable)+len(w.Unreadable) > 0 {
		shown["unreadable"] = append(each(r.Unreadable, publicid.Webhook.String), each(w.Unreadable, publicid.WidgetSecret.String)...)
	}
	return printJSON(to, shown)
}

// whatIsLeft is nil when everything is sealed with the first key.
func whatIsLeft(r webhooks.Rotation, w widget.Resealed) error {
	unreadable := append(each(r.Unreadable, publicid.Webhook.String), each(w.Unreadable, publicid.WidgetSecret.String)...)
	if len(unreadable) > 0 {
		return errors.New("these webhooks and secrets of widgets can't be opened, because their key is not in EARSHOT_SECRET_KEYS or they are damaged:\n  " +
			strings.Join(unreadable, "\n  "))
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
		Short: "Show how many webhooks and secrets of widgets need which key",
		Long: "Shows how many webhooks and secrets of widgets need which key. A key of EARSHOT_SECRET_KEYS that isn't listed can go.\n" +
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
					return map[string]any{"keyId": u.Key, "webhooks": u.Webhooks, "widgetSecrets": u.WidgetSecrets, "readable": u.Readable}
				}))
			}
			t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "KEY\tWEBHOOKS\tWIDGET SECRETS\tREADABLE")
			for _, u := range uses {
				fmt.Fprintf(t, "%s\t%d\t%d\t%v\n", u.Key, u.Webhooks, u.WidgetSecrets, u.Readable)
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
