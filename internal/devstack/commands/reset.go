package commands

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-faster/errors"

	"earshot/internal/devstack"
	"earshot/internal/devstack/statedir"
)

// Reset stops the stack and removes everything that it created. Said receives lines of progress.
func Reset(ctx context.Context, d statedir.Dir, said io.Writer) error {
	if _, err := Down(ctx, d, said); err != nil {
		return err
	}
	lock, holder, err := takeLock(d) // prevents a start during the reset
	if err != nil {
		return err
	}
	if holder != nil {
		return errors.Errorf("somebody started the stack again (%s)", holder)
	}
	defer lock.release()
	if err := devstack.Remove(postgresDir(d)); err != nil {
		return err
	}
	if err := removeTemporal(temporalDir(d)); err != nil {
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

// removeTemporal removes the dev server's directory but keeps the process file. On systems without
// a death signal, the next start uses that file to find a server left behind by a killed `up`.
func removeTemporal(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return errors.Wrap(err, "remove")
	}
	for _, entry := range entries {
		if entry.Name() == "temporal.pid" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return errors.Wrap(err, "remove")
		}
	}
	_ = os.Remove(dir) // fails while the process file exists
	return nil
}
