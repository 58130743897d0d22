package main

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// write writes earshot.tar, its digest and its list of parts into the directory, and reports the
// size. The archive is an OCI layout. It also contains the manifest.json of `docker save`, so that
// older engines can load it.
func write(o options, img v1.Image, parts []byte) error {
	dir, err := os.MkdirTemp("", "earshot-layout-")
	if err != nil {
		return fmt.Errorf("make a directory for the layout: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := writeLayout(dir, o.version, img); err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return fmt.Errorf("make the directory of the image: %w", err)
	}
	digest, err := img.Digest()
	if err != nil {
		return fmt.Errorf("compute the digest: %w", err)
	}
	archive := filepath.Join(o.out, "earshot.tar")
	if err := pack(dir, archive); err != nil {
		return err
	}
	for name, text := range map[string][]byte{"earshot.cdx.json": parts, "digest": []byte(digest.String() + "\n")} {
		if err := os.WriteFile(filepath.Join(o.out, name), text, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return report(o, img, digest, archive)
}

func writeLayout(dir, version string, img v1.Image) error {
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
		Annotations: map[string]string{
			"org.opencontainers.image.ref.name": version, "io.containerd.image.name": "docker.io/library/earshot:" + version,
		},
	}})
	if _, err := layout.Write(dir, index); err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	config, err := img.ConfigName()
	if err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	layers, err := img.Layers()
	if err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	blob := func(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
	saved := map[string]any{"Config": blob(config), "RepoTags": []string{"earshot:" + version}}
	var paths []string
	for _, l := range layers {
		h, err := l.Digest()
		if err != nil {
			return fmt.Errorf("write the layout: %w", err)
		}
		paths = append(paths, blob(h))
	}
	saved["Layers"] = paths
	text, err := json.Marshal([]any{saved})
	if err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), text, 0o644); err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	return nil
}

// pack writes the files of a directory into a tar archive, sorted by name.
func pack(dir, to string) error {
	file, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	defer func() { _ = file.Close() }()
	w := tar.NewWriter(file)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = text.Close() }()
		info, err := text.Stat()
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(name), Mode: 0o644, Size: info.Size()}); err != nil {
			return err
		}
		_, err = io.Copy(w, text)
		return err
	})
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return nil
}

func report(o options, img v1.Image, digest v1.Hash, archive string) error {
	layers, err := img.Layers()
	if err != nil {
		return fmt.Errorf("measure the image: %w", err)
	}
	var compressed, size int64
	for _, l := range layers {
		n, err := l.Size()
		if err != nil {
			return fmt.Errorf("measure the image: %w", err)
		}
		compressed += n
		files, err := l.Uncompressed()
		if err != nil {
			return fmt.Errorf("measure the image: %w", err)
		}
		n, err = io.Copy(io.Discard, files)
		_ = files.Close()
		if err != nil {
			return fmt.Errorf("measure the image: %w", err)
		}
		size += n
	}
	const mib = 1 << 20
	fmt.Printf("%s\n  earshot:%s for linux/%s, %s\n  %.1f MiB, %.1f MiB unpacked\n  docker load -i %s\n",
		archive, o.version, o.arch, digest, float64(compressed)/mib, float64(size)/mib, archive)
	return nil
}
