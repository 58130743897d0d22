package helm_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// kedaVersion is the version with the schemas for ScaledObjects. It is the oldest one that supports
// Temporal's worker deployments.
const kedaVersion = "v2.21.0"

// scaledObject has the fields of a ScaledObject that the tests check.
type scaledObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		ScaleTargetRef struct {
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
		MinReplicaCount int `json:"minReplicaCount"`
		MaxReplicaCount int `json:"maxReplicaCount"`
		Triggers        []struct {
			Type              string            `json:"type"`
			Metadata          map[string]string `json:"metadata"`
			AuthenticationRef struct {
				Name string `json:"name"`
			} `json:"authenticationRef"`
		} `json:"triggers"`
	} `json:"spec"`
}

type keda struct {
	kinds map[string]*jsonschema.Schema
	// parameters are the parameters of the Temporal trigger. A value is true if a
	// TriggerAuthentication may set the parameter.
	parameters map[string]bool
}

// loadKEDA reads the schemas from KEDA's module. It downloads the module without an entry in
// go.mod, which would add hundreds of other modules.
var loadKEDA = sync.OnceValues(func() (*keda, error) {
	out, err := exec.Command("go", "mod", "download", "-json", "github.com/kedacore/keda/v2@"+kedaVersion).Output()
	if err != nil {
		return nil, err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return nil, err
	}
	k := &keda{kinds: map[string]*jsonschema.Schema{}, parameters: map[string]bool{}}
	for kind, file := range map[string]string{"ScaledObject": "keda.sh_scaledobjects.yaml", "TriggerAuthentication": "keda.sh_triggerauthentications.yaml"} {
		if k.kinds[kind], err = crdSchema(filepath.Join(module.Dir, "config", "crd", "bases", file)); err != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "schema", "generated", "scalers-schema.json"))
	if err != nil {
		return nil, err
	}
	var scalers struct {
		Scalers []struct {
			Type       string `json:"type"`
			Parameters []struct {
				Name           string `json:"name"`
				Deprecated     string `json:"deprecated"`
				Authentication bool   `json:"triggerAuthenticationVariableReadable"`
			} `json:"parameters"`
		} `json:"scalers"`
	}
	if err := json.Unmarshal(text, &scalers); err != nil {
		return nil, err
	}
	for _, s := range scalers.Scalers {
		for _, p := range s.Parameters {
			if s.Type == "temporal" && p.Deprecated == "" {
				k.parameters[p.Name] = p.Authentication
			}
		}
	}
	return k, nil
})

// crdSchema returns the schema of a CustomResourceDefinition. It rejects unknown fields.
func crdSchema(file string) (*jsonschema.Schema, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	// The definition doesn't describe the metadata, which every object has.
	properties := schema.(map[string]any)["properties"].(map[string]any)
	delete(properties, "metadata")
	closeSchema(schema)
	properties["metadata"] = true
	c := jsonschema.NewCompiler()
	if err := c.AddResource(file, schema); err != nil {
		return nil, err
	}
	return c.Compile(file)
}

// closeSchema forbids unlisted properties in every object with a list of properties.
func closeSchema(schema any) {
	switch schema := schema.(type) {
	case map[string]any:
		if _, listed := schema["properties"].(map[string]any); listed && schema["x-kubernetes-preserve-unknown-fields"] != true {
			schema["additionalProperties"] = false
		}
		for _, inner := range schema {
			closeSchema(inner)
		}
	case []any:
		for _, inner := range schema {
			closeSchema(inner)
		}
	}
}

// checkKEDA checks an object against KEDA's definition of its kind, and its settings for Temporal
// against the parameters of KEDA's scaler.
func checkKEDA(t *testing.T, o rendered) {
	t.Helper()
	k, err := loadKEDA()
	require.NoError(t, err)
	asJSON, err := yaml.YAMLToJSONStrict(o.yaml)
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	require.NoError(t, err)
	require.NoError(t, k.kinds[o.Kind].Validate(value), "%s", o.yaml)
	switch o.Kind {
	case "ScaledObject":
		var s scaledObject
		require.NoError(t, yaml.UnmarshalStrict(o.yaml, &s))
		require.NotEmpty(t, s.Spec.Triggers)
		for _, trigger := range s.Spec.Triggers {
			require.Equal(t, "temporal", trigger.Type)
			for name := range trigger.Metadata {
				authentication, known := k.parameters[name]
				require.True(t, known && !authentication, "KEDA %s doesn't read %s there", kedaVersion, name)
			}
		}
	case "TriggerAuthentication":
		var a struct {
			Spec struct {
				SecretTargetRef []struct{ Parameter string } `json:"secretTargetRef"`
			} `json:"spec"`
		}
		require.NoError(t, yaml.Unmarshal(o.yaml, &a))
		require.NotEmpty(t, a.Spec.SecretTargetRef)
		for _, ref := range a.Spec.SecretTargetRef {
			require.True(t, k.parameters[ref.Parameter], "KEDA %s doesn't read %s there", kedaVersion, ref.Parameter)
		}
	}
}
