package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// authoritiesModule is the module with the certificate authorities.
const authoritiesModule = "golang.org/x/crypto/x509roots/fallback"

// partsOf returns the list of parts (SBOM) of the image in CycloneDX format. It lists:
//
//   - the modules that the linker recorded in the program
//   - Go's standard library
//   - the certificate authorities
//   - the viewer that the program serves
//
// The modules come from the program, because a go.mod also names modules that aren't linked.
func partsOf(program string, o options, created time.Time) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("list the parts of the program: %w", err)
	}
	self, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, errors.New("list the parts of the image: this program wasn't built with modules")
	}
	components := []cdx.Component{part("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		switch {
		case m.Replace == nil:
		case strings.HasPrefix(m.Replace.Path, "./"): // the Go SDK, which has the version of the program
			m.Version = o.version
		default:
			m = m.Replace
		}
		components = append(components, part(m.Path, m.Version, m.Sum))
	}
	for _, m := range self.Deps {
		if m.Path == authoritiesModule {
			components = append(components, part(m.Path, m.Version, m.Sum))
		}
	}
	viewer, err := viewerParts(o.root)
	if err != nil {
		return nil, err
	}
	components = append(components, viewer...)
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: created.UTC().Format(time.RFC3339),
		Component: &cdx.Component{
			Type: cdx.ComponentTypeContainer, BOMRef: "earshot", Name: "earshot", Version: o.version,
			Properties: &[]cdx.Property{{Name: "org.opencontainers.image.revision", Value: o.revision}},
		},
	}
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.BOMRef
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: "earshot", Dependencies: &refs}}
	var text bytes.Buffer
	if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return nil, fmt.Errorf("list the parts of the image: %w", err)
	}
	return text.Bytes(), nil
}

// viewerParts returns the npm packages whose bundle is in the program (api/viewer).
func viewerParts(root string) (parts []cdx.Component, err error) {
	text, err := os.ReadFile(filepath.Join(root, "api", "viewer", "package.json"))
	if err != nil {
		return nil, fmt.Errorf("list the parts of the viewer: %w", err)
	}
	var list struct{ Dependencies map[string]string }
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("list the parts of the viewer: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(list.Dependencies)) {
		url := "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + list.Dependencies[name]
		parts = append(parts, cdx.Component{
			Type: cdx.ComponentTypeLibrary, BOMRef: url, Name: name, Version: list.Dependencies[name], PackageURL: url,
		})
	}
	return parts, nil
}

// part describes a module by its package URL, with which scanners look up vulnerabilities. The sum
// is Go's own (h1:), which isn't the hash of a file.
func part(path, version, sum string) cdx.Component {
	url := "pkg:golang/" + path + "@" + version
	c := cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: url, Name: path, Version: version, PackageURL: url}
	if sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go.sum", Value: sum}}
	}
	return c
}
