package main

import (
	"bytes"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
)

var repository = filepath.Join("..", "..", "..")

// built builds an image from a folder.
func built(t *testing.T, root string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, run(t.Context(), options{
		root: root, out: dir, version: "1.2.3", revision: "0123abc", created: "2026-11-22T10:00:00+02:00", arch: "amd64",
	}))
	return dir
}

// elsewhere copies the sources into another folder, without git.
func elsewhere(t *testing.T) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "a copy")
	list := exec.Command("git", "-C", repository, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	names, err := list.Output()
	require.NoError(t, err)
	for name := range strings.SplitSeq(strings.Trim(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(repository, name))
		if os.IsNotExist(err) {
			continue // removed, but not committed
		}
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(to, name), text, 0o600))
	}
	return to
}

// unpacked returns the OCI layout of an archive.
func unpacked(t *testing.T, archive string) layout.Path {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("tar", "-xf", archive, "-C", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	path, err := layout.FromPath(dir)
	require.NoError(t, err)
	return path
}

func TestTwoBuildsInDifferentFoldersGiveOneImage(t *testing.T) {
	t.Parallel()
	here, there := built(t, repository), built(t, elsewhere(t))
	for _, name := range []string{"digest", "earshot.tar", "earshot.cdx.json"} {
		one, err := os.ReadFile(filepath.Join(here, name))
		require.NoError(t, err)
		other, err := os.ReadFile(filepath.Join(there, name))
		require.NoError(t, err)
		require.True(t, bytes.Equal(one, other), "%s differs", name)
	}
	archive := filepath.Join(here, "earshot.tar")
	t.Run("the archive is one for docker load and one for OCI", func(t *testing.T) { loads(t, archive) })
	t.Run("the list of parts has every module of the program", func(t *testing.T) {
		listed(t, archive, filepath.Join(here, "earshot.cdx.json"))
	})
}

func loads(t *testing.T, archive string) {
	index, err := unpacked(t, archive).ImageIndex()
	require.NoError(t, err)
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 1)
	oci, err := index.Image(manifest.Manifests[0].Digest)
	require.NoError(t, err)
	docker, err := tarball.ImageFromPath(archive, nil)
	require.NoError(t, err)
	for _, img := range []v1.Image{oci, docker} {
		c, err := img.ConfigFile()
		require.NoError(t, err)
		require.Equal(t, "linux", c.OS)
		require.Equal(t, "amd64", c.Architecture)
		require.Equal(t, time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC), c.Created.Time)
		require.Equal(t, "65532:65532", c.Config.User)
		require.Equal(t, []string{"/usr/local/bin/earshot"}, c.Config.Entrypoint)
		require.Equal(t, []string{"CMD", "/usr/local/bin/earshot", "health"}, c.Config.Healthcheck.Test)
		require.Equal(t, 10*time.Second, c.Config.Healthcheck.Interval)
		require.Contains(t, c.Config.Env, "EARSHOT_HEALTH_LISTEN=:4283")
		require.Contains(t, c.Config.ExposedPorts, "4280/tcp")
		require.Equal(t, "1.2.3", c.Config.Labels["org.opencontainers.image.version"])
		require.Equal(t, "0123abc", c.Config.Labels["org.opencontainers.image.revision"])
		require.Equal(t, "2026-11-22T08:00:00Z", c.Config.Labels["org.opencontainers.image.created"])
		layers, err := img.Layers()
		require.NoError(t, err)
		require.Len(t, layers, len(c.RootFS.DiffIDs))
		for i, l := range layers {
			id, err := l.DiffID()
			require.NoError(t, err)
			require.Equal(t, c.RootFS.DiffIDs[i], id)
		}
	}
}

func listed(t *testing.T, archive, list string) {
	file, err := os.Open(list)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	var bom cdx.BOM
	require.NoError(t, cdx.NewBOMDecoder(file, cdx.BOMFileFormatJSON).Decode(&bom))
	urls := map[string]bool{}
	for _, c := range *bom.Components {
		require.Regexp(t, `^pkg:(golang|npm)/\S+@v?\d\S*$`, c.PackageURL)
		urls[c.PackageURL] = true
	}
	img, err := tarball.ImageFromPath(archive, nil)
	require.NoError(t, err)
	layers, err := img.Layers()
	require.NoError(t, err)
	files, err := layers[1].Uncompressed()
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "earshot")
	untar := exec.Command("tar", "-xO", "usr/local/bin/earshot")
	untar.Stdin = files
	text, err := untar.Output()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, text, 0o600))
	info, err := buildinfo.ReadFile(program)
	require.NoError(t, err)
	require.Greater(t, len(info.Deps), 50)
	for _, m := range info.Deps {
		if m.Path == "earshot/sdk/go" {
			m.Version = "1.2.3" // of the program, because it comes from the same commit
		}
		require.Contains(t, urls, "pkg:golang/"+m.Path+"@"+m.Version)
	}
	require.Contains(t, urls, "pkg:npm/%40stoplight/elements@9.0.25", "the viewer of the reference")
	require.Contains(t, urls, "pkg:golang/std@"+strings.TrimPrefix(info.GoVersion, "go"))
}

func TestTheAuthoritiesOfTheImageAreCertificatesThatAreValid(t *testing.T) {
	t.Parallel()
	count := 0
	for rest := authorities(); ; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		require.True(t, c.IsCA, "%s", c.Subject)
	}
	require.Greater(t, count, 100)
}

func TestAnInstructionThatOnlyAnEngineKnowsIsRefused(t *testing.T) {
	t.Parallel()
	for stage, want := range map[string]string{
		"FROM scratch\nVOLUME /data":                 "read VOLUME of the Dockerfile: it is not known here",
		"FROM scratch\nRUN true":                     "read RUN of the Dockerfile: it is not known here",
		"FROM scratch\nCOPY --from=build /rootfs /x": "only the root file system of the first stage is copied",
		"FROM debian":                                "based on debian",
	} {
		path := filepath.Join(t.TempDir(), "Dockerfile")
		require.NoError(t, os.WriteFile(path, []byte("FROM golang AS build\n"+stage+"\n"), 0o600))
		_, err := lastStage(path, nil)
		require.ErrorContains(t, err, want)
	}
}

// The module names the Go version of CI. A release may use a later patch with security fixes of the
// standard library.
func TestTheDockerfileBuildsWithTheToolchainOfTheModuleOrALaterPatch(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	require.NoError(t, err)
	file, err := os.ReadFile(filepath.Join(repository, "deploy", "Dockerfile"))
	require.NoError(t, err)
	toolchain := regexp.MustCompile(`(?m)^toolchain go(\d+\.\d+)\.(\d+)$`).FindSubmatch(module)
	require.NotNil(t, toolchain)
	builds := regexp.MustCompile(`(?m)^FROM golang:(\d+\.\d+)\.(\d+)-\w+ AS build$`).FindSubmatch(file)
	require.NotNil(t, builds)
	require.Equal(t, string(toolchain[1]), string(builds[1]))
	oldest, err := strconv.Atoi(string(toolchain[2]))
	require.NoError(t, err)
	patch, err := strconv.Atoi(string(builds[2]))
	require.NoError(t, err)
	require.GreaterOrEqual(t, patch, oldest)
}
