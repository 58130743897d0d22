package main

import (
	"fmt"
	"os"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"

	"earshot/internal/access"
)

func newOrgUpdateCommand() *cobra.Command {
	var (
		org, name, slug, color, logo string
		asJSON, closed               bool
		mails, mailsAllowed          bool
		blocked                      []string
	)
	cmd := &cobra.Command{
		Use:   "update",
		Short: "Change an organization's name, settings, and the look of its public boards",
		Long: "Changes the given settings. The slug is the organization's name in the addresses of its public\n" +
			"boards, /b/SLUG. Without a slug, the addresses have the organization's id. An empty --slug, --color,\n" +
			"--logo or --blocked-words removes the setting.",
		Args: cobra.NoArgs,
	}
	cmd.RunE = inOrganization(&org, func(cmd *cobra.Command, _ []string, a *admin) error {
		given := func(flag string, value *string) *string {
			if !cmd.Flags().Changed(flag) {
				return nil
			}
			return value
		}
		in := access.OrganizationPatch{Name: given("name", &name), Slug: given("slug", &slug), Color: given("color", &color)}
		if cmd.Flags().Changed("public-closed") {
			in.PublicClosed = &closed
		}
		if cmd.Flags().Changed("blocked-words") {
			in.BlockedWords = &blocked
		}
		if cmd.Flags().Changed("subscriber-mails") {
			in.SubscriberMails = &mails
		}
		if cmd.Flags().Changed("subscriber-mails-allowed") {
			in.SubscriberMailsAllowed = &mailsAllowed
		}
		if cmd.Flags().Changed("logo") {
			var err error
			if in.Logo, err = readLogo(logo); err != nil {
				return err
			}
		}
		changed, err := a.access.ArrangeOrganization(cmd.Context(), in)
		if err != nil {
			return err
		}
		return printOrganization(cmd, changed, asJSON)
	})
	f := cmd.Flags()
	f.StringVar(&org, "org", "", "id of the organization; may be left out when there is only one")
	f.StringVar(&name, "name", "", "its name")
	f.StringVar(&slug, "slug", "", "its name in addresses: lower-case letters and digits in groups joined by hyphens")
	f.StringVar(&color, "color", "", "its colour, such as #1d4ed8")
	f.StringVar(&logo, "logo", "", "file with its logo: a PNG or JPEG of at most 64 KiB")
	f.BoolVar(&closed, "public-closed", false, "close its public boards for posts, votes and comments; --public-closed=false opens them again")
	f.StringSliceVar(&blocked, "blocked-words", nil, "words and phrases, comma-separated: a post or comment of an end-user that contains one waits for a review")
	f.BoolVar(&mails, "subscriber-mails", false, "whether end-users who agreed get e-mail updates on their posts, votes and comments; --subscriber-mails=false ends that")
	f.BoolVar(&mailsAllowed, "subscriber-mails-allowed", false, "whether the organization may switch these e-mails on, which your mail server sends; --subscriber-mails-allowed=false stops them")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// readLogo reads the file. An empty name returns an empty logo, which removes the present one.
func readLogo(name string) ([]byte, error) {
	if name == "" {
		return []byte{}, nil
	}
	file, err := os.ReadFile(name)
	if err != nil {
		return nil, errors.Wrap(err, "read the logo")
	}
	if len(file) == 0 {
		return nil, errors.Errorf("%s is empty", name)
	}
	return file, nil
}

func printOrganization(cmd *cobra.Command, o *access.Organization, asJSON bool) error {
	if asJSON {
		return printJSON(cmd.OutOrStdout(), map[string]any{
			"id": o.ID, "name": o.Name, "slug": o.Slug, "color": o.Color, "publicClosed": o.PublicClosed, "blockedWords": o.BlockedWords,
			"subscriberMails": o.SubscriberMails, "subscriberMailsAllowed": o.SubscriberMailsAllowed,
		})
	}
	address := o.ID.String()
	if o.Slug != nil {
		address = *o.Slug
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s  %s, its public boards are at /b/%s\n", o.ID, o.Name, address)
	return nil
}
