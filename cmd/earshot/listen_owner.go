package main

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"regexp"

	"earshot/internal/config"
	"earshot/internal/devstack/statedir"

	"github.com/go-faster/errors"
)

// ownerForm matches the output of rand.Text. It can stand in a URL's path without escaping.
var ownerForm = regexp.MustCompile(`^[A-Z2-7]{26,}$`)

// listenOwner returns the id of the stack's directory and creates the id at the first call. A run
// removes only webhooks with its own directory's id. Webhooks of other directories, possibly on
// other machines, only look abandoned from here. Outside of the repository there may be no
// directory and therefore no id.
func listenOwner(dir string, environ config.Environ) (string, error) {
	d, err := statedir.Find(dir, environ)
	if err != nil {
		return "", nil //nolint:nilerr // a service that is named by --url needs no directory
	}
	id, err := os.ReadFile(d.ListenID())
	if os.IsNotExist(err) {
		if err := makeListenID(d); err != nil {
			return "", errors.Wrapf(err, "write %s", d.ListenID())
		}
		id, err = os.ReadFile(d.ListenID())
	}
	if err != nil {
		return "", errors.Wrap(err, "read what tells this directory from others")
	}
	if !ownerForm.Match(id) {
		return "", errors.Errorf("%s isn't as it was written: remove it", d.ListenID())
	}
	return string(id), nil
}

// makeListenID writes the file atomically. If another run has made the file in the meantime, that
// file is kept.
func makeListenID(d statedir.Dir) error {
	if err := d.Make(); err != nil {
		return err
	}
	fresh, err := os.CreateTemp(string(d), filepath.Base(d.ListenID())+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(fresh.Name()) }()
	_, err = fresh.WriteString(rand.Text())
	if err == nil {
		err = fresh.Sync() // without it the name may reach the disk before the content
	}
	if closed := fresh.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Link(fresh.Name(), d.ListenID())
	}
	if os.IsExist(err) {
		return nil
	}
	return err
}
