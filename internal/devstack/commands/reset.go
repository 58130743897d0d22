package commands

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/go-faster/errors"

	"earshot/internal/devstack"
	"earshot/internal/devstack/process"
	"earshot/internal/devstack/statedir"
)

// Reset stops the stack and removes everything that it created. Said receives lines of progress.
func Reset(ctx context.Context, d statedir.Dir, said io.Writer) error {
	if _, err := Down(ctx, d, said); err != nil {
		return err
	}
	lock, err := takeLock(d) // prevents a start during the reset
	if err != nil {
		return err
	}
	defer lock.release()
	if err := devstack.Remove(postgresDir(d)); err != nil {
		return err
	}
	if err := removeTemporal(ctx, temporalDir(d)); err != nil {
		return err
	}
	for _, path := range []string{
		d.DevEnv(), secretsEnv(d), serviceLog(d), serviceLog(d) + ".old", upLog(d), upLog(d) + ".old", mailDir(d), d.ListenID(),
	} {
		if err := os.RemoveAll(path); err != nil {
			return errors.Wrap(err, "remove")
		}
	}
	fmt.Fprintf(said, "Removed the data in %s\n", statedir.ShortPath(string(d)))
	return nil
}

// removeTemporal stops a dev server that a killed `up` left behind, and removes its directory.
func removeTemporal(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return nil
	}
	claim, err := process.TakeClaim(ctx, dir, "temporal", syscall.SIGINT, nil)
	if err != nil {
		return err
	}
	defer claim.Release()
	if err := os.RemoveAll(dir); err != nil {
		return errors.Wrap(err, "remove")
	}
	return nil
}
