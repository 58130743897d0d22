package commands

import (
	"context"
	"fmt"
	"strings"
	"time"

	"earshot/internal/devstack"
	"earshot/internal/migrate"
	"earshot/internal/postgres"
	"earshot/internal/searchattributes"
)

const (
	databaseName = "earshot"
	// setUpTimeout bounds the set-up of a server that has just become ready. It takes milliseconds,
	// or a second on a busy machine.
	setUpTimeout = 30 * time.Second
)

func (u *up) startPostgres(ctx context.Context) (string, error) {
	var err error
	// The data must survive a power failure, for example an empty laptop battery.
	u.postgres, err = devstack.StartPostgres(ctx, devstack.PostgresOptions{
		Dir: postgresDir(u.Dir), Port: u.ports.postgres, Durable: true, Report: u.report,
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("127.0.0.1:%d", u.postgres.Port()), nil
}

func (u *up) startTemporal(ctx context.Context) (string, error) {
	binary, err := devstack.TemporalBinary(ctx, u.root, u.report)
	if err != nil {
		return "", err
	}
	u.temporal, err = devstack.StartTemporal(ctx, devstack.TemporalOptions{
		Dir: temporalDir(u.Dir), DatabaseFile: true, Port: u.ports.temporal, UIPort: u.ports.webUI,
		Binary: binary, Report: u.report,
		// Ports on the command line override those in the file.
		ExtraArgs: []string{"--env-file", u.temporalDev(), "--env", "dev"},
	})
	if err != nil {
		return "", err
	}
	return u.temporal.Address() + ", web UI " + u.temporal.UIURL(), nil
}

func (u *up) registerAttributes(ctx context.Context) (string, error) {
	wanted, err := searchattributes.Read(u.temporalDev())
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout)
	defer cancel()
	c, err := devstack.TemporalClient(u.temporal.Address(), nil)
	if err != nil {
		return "", err
	}
	defer c.Close()
	added, err := searchattributes.SetUp(ctx, c, devstack.Namespace, wanted)
	if err != nil {
		return "", err
	}
	if len(added) == 0 {
		return "all there", nil
	}
	return "registered " + strings.Join(added, ", "), nil
}

func (u *up) migrate(ctx context.Context) (string, error) {
	if err := u.postgres.CreateDatabase(ctx, databaseName); err != nil {
		return "", err
	}
	database, err := u.database()
	if err != nil {
		return "", err
	}
	defer database.Close()
	applied, err := migrate.Up(ctx, database)
	if err != nil {
		return "", err
	}
	if len(applied) == 0 {
		return databaseName + " is up to date", nil
	}
	return fmt.Sprintf("%s, applied migrations: %d, the last is %s", databaseName, len(applied), applied[len(applied)-1]), nil
}

func (u *up) databaseURL() string { return u.postgres.URL(databaseName) }

func (u *up) database() (*postgres.DB, error) {
	return postgres.Open(postgres.Options{URL: u.databaseURL()})
}
