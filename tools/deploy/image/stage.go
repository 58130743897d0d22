package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// assemble makes the image from the layers and the settings in the Dockerfile.
func assemble(o options, created time.Time, base, app []entry) (v1.Image, error) {
	config, err := lastStage(filepath.Join(o.root, "deploy", "Dockerfile"), map[string]string{
		"VERSION": o.version, "REVISION": o.revision, "CREATED": o.created,
	})
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		Architecture: o.arch, OS: "linux", Created: v1.Time{Time: created.UTC()}, Config: config,
		RootFS: v1.RootFS{Type: "layers"},
	}); err != nil {
		return nil, fmt.Errorf("configure the image: %w", err)
	}
	for _, part := range []struct {
		entries []entry
		of      string
	}{{base, "authorities of certificates, users"}, {app, "earshot " + o.version}} {
		l, err := layer(part.entries, created)
		if err != nil {
			return nil, err
		}
		if img, err = mutate.Append(img, mutate.Addendum{Layer: l, History: v1.History{
			Created: v1.Time{Time: created.UTC()}, CreatedBy: "make image", Comment: part.of,
		}}); err != nil {
			return nil, fmt.Errorf("add a layer: %w", err)
		}
	}
	return img, nil
}

// lastStage reads the settings of the image from a Dockerfile. It rejects unknown instructions,
// because they would apply only to an image that an engine builds.
func lastStage(path string, args map[string]string) (v1.Config, error) {
	file, err := os.Open(path)
	if err != nil {
		return v1.Config{}, fmt.Errorf("read the Dockerfile: %w", err)
	}
	defer func() { _ = file.Close() }()
	parsed, err := parser.Parse(file)
	if err != nil {
		return v1.Config{}, fmt.Errorf("read the Dockerfile: %w", err)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return v1.Config{}, fmt.Errorf("read the Dockerfile: %w", err)
	}
	last := stages[len(stages)-1]
	if last.BaseName != "scratch" {
		return v1.Config{}, fmt.Errorf("the last stage of the Dockerfile is based on %s: there is nothing to base an image on here", last.BaseName)
	}
	config := v1.Config{Labels: map[string]string{}, ExposedPorts: map[string]struct{}{}, WorkingDir: "/"}
	lex := shell.NewLex(parsed.EscapeToken)
	for _, command := range last.Commands {
		if expands, ok := command.(instructions.SupportsSingleWordExpansion); ok {
			if err := expands.Expand(func(word string) (string, error) {
				expanded, _, err := lex.ProcessWord(word, variables(args))
				return expanded, err
			}); err != nil {
				return v1.Config{}, fmt.Errorf("read %s of the Dockerfile: %w", command.Name(), err)
			}
		}
		if err := apply(&config, command); err != nil {
			return v1.Config{}, fmt.Errorf("read %s of the Dockerfile: %w", command.Name(), err)
		}
	}
	return config, nil
}

func apply(config *v1.Config, command instructions.Command) error {
	switch c := command.(type) {
	case *instructions.ArgCommand:
	case *instructions.CopyCommand:
		if c.From != "build" || c.DestPath != "/" || !slices.Equal(c.SourcePaths, []string{"/rootfs"}) {
			return errors.New("only the root file system of the first stage is copied")
		}
	case *instructions.LabelCommand:
		for _, pair := range c.Labels {
			config.Labels[pair.Key] = pair.Value
		}
	case *instructions.EnvCommand:
		for _, pair := range c.Env {
			config.Env = append(config.Env, pair.String())
		}
	case *instructions.UserCommand:
		config.User = c.User
	case *instructions.ExposeCommand:
		for _, port := range c.Ports {
			config.ExposedPorts[port+"/tcp"] = struct{}{}
		}
	case *instructions.HealthCheckCommand:
		config.Healthcheck = &v1.HealthConfig{
			Test: c.Health.Test, Interval: c.Health.Interval, Timeout: c.Health.Timeout,
			StartPeriod: c.Health.StartPeriod, Retries: c.Health.Retries,
		}
	case *instructions.EntrypointCommand:
		config.Entrypoint = c.CmdLine
	case *instructions.CmdCommand:
		config.Cmd = c.CmdLine
	default:
		return errors.New("it is not known here")
	}
	return nil
}

// variables are the build arguments.
type variables map[string]string

// Get returns the value of an argument.
func (v variables) Get(name string) (string, bool) { value, ok := v[name]; return value, ok }

// Keys returns the names of the arguments.
func (v variables) Keys() []string { return slices.Sorted(maps.Keys(v)) }
