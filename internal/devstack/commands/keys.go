package commands

import (
	"context"
	"log/slog"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/organization"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/devstack"
	"earshot/internal/devstack/statedir"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/seal"
)

const (
	readKeyVariable = "EARSHOT_READ_API_KEY"
	uiURLVariable   = "TEMPORAL_UI_URL"
)

// keys are the API keys of dev.env.
type keys struct {
	write, read string
	// fresh reports whether this run created the read:write key, so that the key may be printed.
	fresh bool
}

// provideKeys reads the keys from dev.env and creates those that are missing or no longer valid.
// The first time it also creates an organization.
func (u *up) provideKeys(ctx context.Context) (string, error) {
	had, err := statedir.ReadEnv(u.Dir.DevEnv())
	if err != nil {
		return "", err
	}
	database, err := u.database()
	if err != nil {
		return "", err
	}
	defer database.Close()
	// Changes of organizations and keys cause no events, so they need no Temporal and no sealing key.
	members := access.New(database, change.NewRunner(database, nil, seal.New(), change.Settings{}), slog.Default())
	owner, first, err := firstOwner(ctx, database, members)
	if err != nil {
		return "", err
	}
	m := keyMaker{access: members, owner: owner}
	if !first {
		m.report = u.report
	}
	if u.keys.write, u.keys.fresh, err = m.provide(ctx, statedir.KeyVariable, had[statedir.KeyVariable], "read:write"); err != nil {
		return "", err
	}
	if u.keys.read, _, err = m.provide(ctx, readKeyVariable, had[readKeyVariable], "read"); err != nil {
		return "", err
	}
	if err := u.writeDevEnv(); err != nil {
		return "", err
	}
	outcome := "as before"
	switch {
	case first:
		outcome = "made an organization with two keys"
	case u.keys.fresh:
		outcome = "made a new key"
	}
	return outcome + ", in " + statedir.ShortPath(u.Dir.DevEnv()), nil
}

// keyMaker replaces keys. Without a report it prints nothing.
type keyMaker struct {
	access *access.Service
	owner  *db.User
	report devstack.Report
}

// provide returns the existing key if it is valid, or a new one.
func (m keyMaker) provide(ctx context.Context, variable, had, scope string) (key string, fresh bool, err error) {
	reason := "is not in dev.env"
	if had != "" {
		_, err := m.access.Authenticate(ctx, had)
		if err == nil {
			return had, false, nil
		}
		if !problem.Is(err, problem.Unauthorized) {
			return "", false, errors.Wrap(err, "try the API key")
		}
		reason = "in dev.env is not valid"
	}
	scoped := postgres.WithOrganization(ctx, m.owner.OrganizationID)
	key, _, err = m.access.CreateAPIKey(scoped, access.NewAPIKey{
		User: m.owner.ID, Name: "development, " + scope, Scope: scope,
	})
	if err != nil {
		return "", false, errors.Wrapf(err, "make the %s key", scope)
	}
	m.report.Say("%s %s; made a new %s key", variable, reason, scope)
	return key, true, nil
}

// firstOwner returns the member that the keys act as: the first member of the oldest organization.
// It creates both if there is no organization.
func firstOwner(ctx context.Context, database *postgres.DB, members *access.Service) (owner *db.User, made bool, err error) {
	everywhere := database.Across("the development stack uses the oldest organization").Context(ctx)
	oldest, err := database.Client().Organization.Query().Order(db.Asc(organization.FieldID)).First(everywhere)
	if db.IsNotFound(err) {
		_, owner, err = members.CreateOrganization(ctx, access.NewOrganization{
			Name: "Development", Plan: "business", OwnerEmail: "owner@example.com", OwnerName: "Owner",
			// Developers try out these e-mails, which go to their own directory or mail server.
			SubscriberMailsAllowed: true,
		})
		if err != nil {
			return nil, false, errors.Wrap(err, "make an organization")
		}
		return owner, true, nil
	}
	if err != nil {
		return nil, false, errors.Wrap(err, "look for an organization")
	}
	_, owner, err = members.FindOrganization(ctx, &oldest.ID)
	return owner, false, err
}

// writeDevEnv writes the addresses and keys for shells. It runs before the service starts, so that
// the keys survive a failed start.
func (u *up) writeDevEnv() error {
	if err := u.servicePorts(); err != nil {
		return err
	}
	return statedir.WriteEnv(u.Dir.DevEnv(), "Written by `earshot up` at each start. In a shell: set -a; . "+statedir.ShellWord(u.Dir.DevEnv()), []statedir.Setting{
		{Name: statedir.BaseURLVariable, Value: u.baseURL()},
		{Name: "EARSHOT_METRICS_URL", Value: "http://" + u.metricsAddress() + "/metrics"},
		{Name: statedir.KeyVariable, Value: u.keys.write},
		{Name: readKeyVariable, Value: u.keys.read},
		{Name: config.DatabaseURL, Value: u.databaseURL()},
		{Name: "TEMPORAL_ADDRESS", Value: u.temporal.Address()},
		{Name: uiURLVariable, Value: u.temporal.UIURL()},
	})
}
