package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"

	"earshot/internal/publicactions"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/webhooks"
)

func newSecretsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "Manage the keys that seal secrets of webhooks and widgets, and the addresses in submissions",
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
		Long: "Seals values anew that are not sealed with the first key of EARSHOT_SECRET_KEYS: the secrets and URLs of webhooks,\n" +
			"the secrets of widgets, and the names and addresses of people who opted in with a submission.\n" +
			"It can run beside the service. You can stop and repeat it. It fails if it can't seal every value.",
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
			i, err := publicactions.ResealSubmissions(cmd.Context(), a.store, a.secrets)
			if err != nil {
				return err
			}
			done := rotation{r, w, i}
			if err := done.show(cmd.OutOrStdout(), *asJSON); err != nil {
				return err
			}
			return done.left()
		}),
	}
}

// rotation is the result of sealing everything with the first key.
type rotation struct {
	webhooks    webhooks.Rotation
	widgets     seal.Resealed[publicid.WidgetSecret]
	submissions seal.Resealed[publicid.Submission]
}

func (r rotation) show(to io.Writer, asJSON bool) error {
	if !asJSON {
		fmt.Fprintf(to, "%d webhooks were sealed anew with %s, %d are left\n", r.webhooks.Rotated, r.webhooks.KeyID, r.webhooks.Left)
		if r.widgets.Done > 0 {
			fmt.Fprintf(to, "%d secrets of widgets were sealed anew\n", r.widgets.Done)
		}
		if r.submissions.Done > 0 {
			fmt.Fprintf(to, "%d submissions were sealed anew\n", r.submissions.Done)
		}
		return nil
	}
	shown := map[string]any{
		"rotated": r.webhooks.Rotated, "left": r.webhooks.Left, "keyId": r.webhooks.KeyID,
		"widgetSecretsRotated": r.widgets.Done, "submissionsRotated": r.submissions.Done,
	}
	if unreadable := r.unreadable(); len(unreadable) > 0 {
		shown["unreadable"] = unreadable
	}
	return printJSON(to, shown)
}

func (r rotation) unreadable() []string {
	return slices.Concat(each(r.webhooks.Unreadable, publicid.Webhook.String), each(r.widgets.Unreadable, publicid.WidgetSecret.String),
		each(r.submissions.Unreadable, publicid.Submission.String))
}

// left returns nil if everything is sealed with the first key.
func (r rotation) left() error {
	if unreadable := r.unreadable(); len(unreadable) > 0 {
		return errors.New("these webhooks, secrets of widgets and submissions can't be opened, because their key is not in EARSHOT_SECRET_KEYS or they are damaged:\n  " +
			strings.Join(unreadable, "\n  "))
	}
	if r.webhooks.Left > 0 {
		return errors.Errorf("%d webhooks were sealed with another key meanwhile: a process runs that has another one in front; "+
			"restart it and repeat", r.webhooks.Left)
	}
	return nil
}

func newSecretsListCommand(asJSON *bool) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Show the number of webhooks, secrets of widgets and submissions for each key",
		Long: "Shows for each key the number of webhooks, secrets of widgets and submissions that need it.\n" +
			"You can remove a key from EARSHOT_SECRET_KEYS if it isn't listed. The line without a key counts webhooks\n" +
			"whose URL isn't sealed yet: `earshot secrets rotate` seals them.",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: withSecrets(func(cmd *cobra.Command, _ []string, a *admin) error {
			uses, err := a.webhooks.SecretKeys(cmd.Context())
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), each(uses, func(u webhooks.SecretKey) map[string]any {
					return map[string]any{"keyId": u.Key, "webhooks": u.Webhooks, "widgetSecrets": u.WidgetSecrets, "submissions": u.Submissions, "readable": u.Readable}
				}))
			}
			t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "KEY\tWEBHOOKS\tWIDGET SECRETS\tSUBMISSIONS\tREADABLE")
			for _, u := range uses {
				fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%v\n", u.Key, u.Webhooks, u.WidgetSecrets, u.Submissions, u.Readable)
			}
			return t.Flush()
		}),
	}
}

// each never returns nil, so that the JSON is [] and not null.
func each[T, R any](list []T, of func(T) R) []R {
	all := make([]R, len(list))
	for i, v := range list {
		all[i] = of(v)
	}
	return all
}
