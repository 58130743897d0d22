package main

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"regexp"

	"github.com/go-faster/errors"
)

// ownerForm is what rand.Text returns. Part of a URL's path, it has nothing to be escaped.
var ownerForm = regexp.MustCompile(`^[A-Z2-7]{26,}$`)

// listenOwner is the id of the stack's directory, made when it is first needed. It keeps a run
// from removing what runs with another directory and uses the same service, also from another
// machine: from here that may look as if it were gone. A program that is called outside of the
// repository, for a service that it is named, may have no directory and so no id.
func listenOwner(dir string, environ lookup) (string, error) {
	d, err := findStateDir(dir, environ)
	if err != nil {
		return "", nil //nolint:nilerr // a service that is named by --url needs no directory
	}
	id, err := os.ReadFile(d.listenID())
	if os.IsNotExist(err) {
		if err := makeListenID(d); err != nil {
			return "", errors.Wrapf(err, "write %s", d.listenID())
		}
		id, err = os.ReadFile(d.listenID())
	}
	if err != nil {
		return "", errors.Wrap(err, "read what tells this directory from others")
	}
	if !ownerForm.Match(id) {
		return "", errors.Errorf("%s isn't as it was written: remove it", d.listenID())
	}
	return string(id), nil
}

// makeListenID writes the file whole or not at all. One that another run has made meanwhile stays.
func makeListenID(d stateDir) error {
	if err := os.MkdirAll(string(d), 0o711); err != nil { // as up does
		return err
	}
	fresh, err := os.CreateTemp(string(d), filepath.Base(d.listenID())+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(fresh.Name()) }()
	_, err = fresh.WriteString(rand.Text())
	if err == nil {
		err = fresh.Sync() // the name may reach the disk before the content does
	}
	if closed := fresh.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Link(fresh.Name(), d.listenID())
	}
	if os.IsExist(err) {
		return nil
	}
	return err
}
