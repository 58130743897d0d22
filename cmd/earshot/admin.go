package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"

	"earshot/ent/db"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/migrate"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/send"
	"earshot/internal/webhooks"
	"earshot/internal/widget"
)

// admin gives commands access to organizations, members and keys. Changes of these cause no events,
// so the commands need no Temporal.
type admin struct {
	store    *postgres.DB
	access   *access.Service
	webhooks *webhooks.Service
	widget   *widget.Service
	secrets  *seal.Box
}

// openAdmin opens the database. Commands that read sealed values pass a box with the keys; all
// others pass an empty one.
func openAdmin(environ []string, box *seal.Box) (*admin, error) {
	s, err := openStore(environ)
	if err != nil {
		return nil, err
	}
	changes := change.NewRunner(s, nil, box, change.Settings{})
	return &admin{
		store: s, access: access.New(s, changes, slog.Default()),
		webhooks: webhooks.New(s, changes, send.NewGuard(nil, false), box, webhooks.Settings{}, slog.Default()),
		widget:   widget.New(s, changes, nil, box), // identifies no end-users here
		secrets:  box,
	}, nil
}

// Close closes the database connections.
func (a *admin) Close() { a.store.Close() }

// openStore reads only the database's URL, so that an operator's shell doesn't need the service's
// secrets.
func openStore(environ []string) (*postgres.DB, error) {
	url, err := config.Lookup(environ, config.DatabaseURL)
	if err != nil {
		return nil, err
	}
	if url == "" {
		return nil, errors.Errorf("%s is missing; for the development stack: set -a; . .earshot/dev.env", config.DatabaseURL)
	}
	return postgres.Open(postgres.Options{URL: url})
}

// command is the body of a command that uses the domain.
type command func(cmd *cobra.Command, args []string, a *admin) error

// withAdmin runs a command against a database whose schema is up to date.
func withAdmin(run command) func(*cobra.Command, []string) error {
	return withBox(func() (*seal.Box, error) { return seal.New(), nil }, run)
}

// withSecrets is withAdmin for a command that needs the sealing keys.
func withSecrets(run command) func(*cobra.Command, []string) error {
	return withBox(func() (*seal.Box, error) {
		keys, err := config.LoadSecretKeys(os.Environ())
		if err != nil {
			return nil, err
		}
		return webhooks.NewBox(keys)
	}, run)
}

func withBox(open func() (*seal.Box, error), run command) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		box, err := open()
		if err != nil {
			return err
		}
		a, err := openAdmin(os.Environ(), box)
		if err != nil {
			return err
		}
		defer a.Close()
		if err := migrate.CheckSchema(cmd.Context(), a.store); err != nil {
			return err
		}
		return run(cmd, args, a)
	}
}

// organization loads the organization named by --org, or the only one in the database.
func (a *admin) organization(ctx context.Context, text string) (*db.Organization, *db.User, error) {
	if text == "" {
		return a.access.FindOrganization(ctx, nil)
	}
	id, err := publicid.Parse[publicid.Organization](text)
	if err != nil {
		return nil, nil, errors.Errorf("--org %s is not the id of an organization", text)
	}
	return a.access.FindOrganization(ctx, &id)
}

// member loads a member of the organization in the context by id or e-mail address.
func (a *admin) member(ctx context.Context, text string) (*db.User, error) {
	if strings.Contains(text, "@") {
		return a.access.MemberByEmail(ctx, text)
	}
	id, err := publicid.Parse[publicid.User](text)
	if err != nil {
		return nil, errors.Errorf("%s is neither the id nor the e-mail address of a member; `earshot member list` shows them", text)
	}
	return a.access.Member(ctx, id)
}

// removedMember returns the id of a removed member, given the id or the e-mail address.
func (a *admin) removedMember(ctx context.Context, text string) (publicid.User, error) {
	if strings.Contains(text, "@") {
		m, err := a.access.RemovedMemberByEmail(ctx, text)
		if err != nil {
			return publicid.User{}, err
		}
		return m.ID, nil
	}
	id, err := publicid.Parse[publicid.User](text)
	if err != nil {
		return id, errors.Errorf("%s is neither the id nor the e-mail address of a removed member; `earshot audit --actions deleteMember` shows the ids", text)
	}
	return id, nil
}

// memberOr returns the id of the member that a flag names, or the id of other if the flag is empty.
func (a *admin) memberOr(ctx context.Context, text string, other *db.User) (publicid.User, error) {
	if text == "" {
		return other.ID, nil
	}
	m, err := a.member(ctx, text)
	if err != nil {
		return publicid.User{}, err
	}
	return m.ID, nil
}

// printJSON prints the output of --json.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return errors.Wrap(err, "print")
	}
	return nil
}
