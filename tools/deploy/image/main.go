// Command image makes the container image of Earshot without a container engine. It builds the
// program, adds a root file system, and writes both as one archive, with a list of its parts (SBOM)
// beside it. `docker load`, podman and skopeo can load the archive. The same sources give the same
// image in any folder.
//
// The settings of the image, such as the user and the health check, come from the last stage of
// deploy/Dockerfile. That Dockerfile in turn uses the root file system of this command (--rootfs).
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// options are the options of a build.
type options struct {
	root              string // of the repository
	out               string // directory of the archive and the list of parts
	rootfs            string // directory of the root file system, instead of an image
	version, revision string
	created           string
	arch              string
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("image: ")
	var o options
	flag.StringVar(&o.root, "root", filepath.Join("..", ".."), "root of the repository")
	flag.StringVar(&o.out, "out", filepath.Join("..", "..", ".earshot", "image"), "directory for earshot.tar and its SBOM")
	flag.StringVar(&o.rootfs, "rootfs", "", "write the root file system into this directory, and no image")
	flag.StringVar(&o.version, "version", "", "version of the program (default: the output of git describe)")
	flag.StringVar(&o.revision, "revision", "", "commit of the sources (default: git's HEAD)")
	flag.StringVar(&o.created, "created", "", "time of the image, in RFC 3339 (default: of the commit)")
	flag.StringVar(&o.arch, "arch", runtime.GOARCH, "architecture, such as amd64 or arm64")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options) error {
	if err := o.complete(ctx); err != nil {
		return err
	}
	created, err := time.Parse(time.RFC3339, o.created)
	if err != nil {
		return fmt.Errorf("read the time of the image: %w", err)
	}
	o.created = created.UTC().Format(time.RFC3339)
	work, err := os.MkdirTemp("", "earshot-image-")
	if err != nil {
		return fmt.Errorf("make a directory to build in: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	program := filepath.Join(work, "earshot")
	if err := compile(ctx, o, program); err != nil {
		return err
	}
	base, app, err := contents(program)
	if err != nil {
		return err
	}
	if o.rootfs != "" {
		return unfold(o.rootfs, append(base, app...))
	}
	parts, err := partsOf(program, o, created)
	if err != nil {
		return err
	}
	img, err := assemble(o, created, base, app)
	if err != nil {
		return err
	}
	return write(o, img, parts)
}

// complete gets the missing options from git.
func (o *options) complete(ctx context.Context) error {
	for _, ask := range []struct {
		into *string
		args []string
	}{
		{&o.version, []string{"describe", "--tags", "--always", "--dirty=-changed"}},
		{&o.revision, []string{"rev-parse", "HEAD"}},
		{&o.created, []string{"log", "-1", "--format=%cI"}},
	} {
		if *ask.into != "" {
			continue
		}
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", o.root}, ask.args...)...).Output()
		if err != nil {
			return fmt.Errorf("ask git for the version: %w; --version, --revision and --created say it too", err)
		}
		*ask.into = strings.TrimSpace(string(out))
	}
	return nil
}

// compile builds the program without C, so that it needs no library. The result is the same for all
// checkouts of a commit. The flags are those of the Makefile, so that Go reuses the packages that
// `make build` compiled.
func compile(ctx context.Context, o options, to string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return fmt.Errorf("build the program: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-C", o.root, "-o", to, "-trimpath", "-tags=nomsgpack",
		"-gcflags=all=-dwarf=false", "-buildvcs=false",
		"-ldflags", fmt.Sprintf("-s -w -X main.version=%s -X main.revision=%s", o.version, o.revision), "./cmd/earshot")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+o.arch, "GOFLAGS=", "GOWORK=off")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build the program: %w", err)
	}
	return nil
}
