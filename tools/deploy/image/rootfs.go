package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// entry is a file of the image, or a directory if its name ends with a slash. All entries belong to
// root, so that the program can't change them.
type entry struct {
	name string
	mode int64
	text []byte
}

// The program's user has a name, but its home directory doesn't exist, because the program writes
// no files.
const (
	passwd = "root:x:0:0:root:/:/sbin/nologin\nearshot:x:65532:65532:earshot:/nonexistent:/sbin/nologin\n"
	group  = "root:x:0:\nearshot:x:65532:\n"
)

// contents returns the files of the two layers: the rarely changing files, and the program.
func contents(program string) (base, app []entry, err error) {
	text, err := os.ReadFile(program)
	if err != nil {
		return nil, nil, fmt.Errorf("read the program: %w", err)
	}
	base = []entry{
		{"etc/", 0o755, nil}, {"etc/group", 0o644, []byte(group)}, {"etc/passwd", 0o644, []byte(passwd)},
		{"etc/ssl/", 0o755, nil}, {"etc/ssl/certs/", 0o755, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, authorities()},
	}
	app = []entry{
		{"usr/", 0o755, nil}, {"usr/local/", 0o755, nil}, {"usr/local/bin/", 0o755, nil},
		{"usr/local/bin/earshot", 0o755, text},
	}
	return base, app, nil
}

// authorities returns the certificate authorities that Mozilla trusts without constraints, because
// a PEM file can't express a constraint. The file is at the first place where Go looks. Operators
// can add others as files beside it.
func authorities() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // writing to a buffer never fails
		}
	}
	return all.Bytes()
}

// layer packs entries, all with the same time, so that the same files give the same bytes.
func layer(entries []entry, at time.Time) (v1.Layer, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, e := range entries {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.text)), ModTime: at.UTC(), Format: tar.FormatPAX,
		}
		if e.name[len(e.name)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.name, err)
		}
		if _, err := w.Write(e.text); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack a layer: %w", err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("pack a layer: %w", err)
	}
	return l, nil
}

// unfold writes the entries to a directory.
func unfold(dir string, entries []entry) error {
	for _, e := range entries {
		path := filepath.Join(dir, e.name)
		if e.name[len(e.name)-1] == '/' {
			if err := os.MkdirAll(path, os.FileMode(e.mode)); err != nil {
				return fmt.Errorf("write the root file system: %w", err)
			}
			continue
		}
		if err := os.WriteFile(path, e.text, os.FileMode(e.mode)); err != nil {
			return fmt.Errorf("write the root file system: %w", err)
		}
	}
	return nil
}
