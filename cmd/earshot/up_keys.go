package main

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/organization"
	"earshot/internal/access"
	"earshot/internal/config"
	"earshot/internal/devstack"
	"earshot/internal/postgres"
	"earshot/internal/problem"
)

const (
	keyVariable     = "EARSHOT_API_KEY"
	readKeyVariable = "EARSHOT_READ_API_KEY"
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
	had, err := readEnvFile(u.dir.devEnv())
	if err != nil {
		return "", err
	}
	a, err := u.admin()
	if err != nil {
		return "", err
	}
	defer a.Close()
	owner, first, err := firstOwner(ctx, a)
	if err != nil {
		return "", err
	}
	m := keyMaker{admin: a, owner: owner}
	if !first {
		m.report = u.report
	}
	if u.keys.write, u.keys.fresh, err = m.provide(ctx, keyVariable, had[keyVariable], "read:write"); err != nil {
		return "", err
	}
	if u.keys.read, _, err = m.provide(ctx, readKeyVariable, had[readKeyVariable], "read"); err != nil {
		return "", err
	}
	if err := u.writeDevEnv(); err != nil {
		return "", err
	}
	return keysOutcome(first, u.keys.fresh) + shortPath(u.dir.devEnv()), nil
}

// keyMaker replaces keys. Without a report it prints nothing.
type keyMaker struct {
	admin  *admin
	owner  *db.User
	report devstack.Report
}

// provide returns the existing key if it is valid, or a new one.
func (m keyMaker) provide(ctx context.Context, variable, had, scope string) (key string, fresh bool, err error) {
	valid, err := authenticates(ctx, m.admin, had)
	if err != nil || valid {
		return had, false, err
	}
	scoped := postgres.WithOrganization(ctx, m.owner.OrganizationID)
	key, _, err = m.admin.access.CreateAPIKey(scoped, access.NewAPIKey{
		User: m.owner.ID, Name: "development, " + scope, Scope: scope,
	})
	if err != nil {
		return "", false, errors.Wrapf(err, "make the %s key", scope)
	}
	if m.report != nil {
		reason := "is not in dev.env"
		if had != "" {
			reason = "in dev.env is not valid"
		}
		m.report("%s %s; made a new %s key", variable, reason, scope)
	}
	return key, true, nil
}

func keysOutcome(first, fresh bool) string {
	switch {
	case first:
		return "made an organization with two keys, in "
	case fresh:
		return "made a new key, in "
	default:
		return "as before, in "
	}
}

func authenticates(ctx context.Context, a *admin, key string) (bool, error) {
	if key == "" {
		return false, nil
	}
	_, err := a.access.Authenticate(ctx, key)
	if p, ok := problem.As(err); ok && p.Code == problem.Unauthorized {
		return false, nil
	}
	if err != nil {
		return false, errors.Wrap(err, "try the API key")
	}
	return true, nil
}

// firstOwner returns the member that the keys act as: the first member of the oldest organization.
// It creates both if there is no organization.
func firstOwner(ctx context.Context, a *admin) (owner *db.User, made bool, err error) {
	everywhere := a.store.Across("the development stack uses the oldest organization").Context(ctx)
	oldest, err := a.store.Client().Organization.Query().Order(db.Asc(organization.FieldID)).First(everywhere)
	if db.IsNotFound(err) {
		_, owner, err = a.access.CreateOrganization(ctx, access.NewOrganization{
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
	_, owner, err = a.access.FindOrganization(ctx, &oldest.ID)
	return owner, false, err
}

// writeDevEnv writes the addresses and keys for shells. It runs before the service starts, so that
// the keys survive a failed start.
func (u *up) writeDevEnv() error {
	if err := u.servicePorts(); err != nil {
		return err
	}
	return writeEnvFile(u.dir.devEnv(), "Written by `earshot up` at each start. In a shell: set -a; . "+shellWord(u.dir.devEnv()), []setting{
		{"EARSHOT_BASE_URL", u.baseURL()},
		{"EARSHOT_METRICS_URL", "http://" + u.metricsAddress() + "/metrics"},
		{keyVariable, u.keys.write},
		{readKeyVariable, u.keys.read},
		{config.DatabaseURL, u.databaseURL()},
		{"TEMPORAL_ADDRESS", u.temporal.Address()},
		{"TEMPORAL_UI_URL", u.temporal.UIURL()},
	})
}
