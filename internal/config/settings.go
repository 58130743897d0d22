package config

import (
	"reflect"

	"github.com/caarlos0/env/v11"
)

// Setting is one line of the table of settings for operators. Each setting can be set by its
// variable, or by a file whose path is in the variable NAME_FILE.
type Setting struct {
	Name     string `json:"name"`
	Default  string `json:"default"`
	Help     string `json:"help"`
	Required bool   `json:"required"`
	// Secret marks a value that belongs into a file and into no log.
	Secret bool `json:"secret"`
	// Temporal marks a setting that Temporal's clients read and this program doesn't.
	Temporal bool `json:"temporal"`
	// Type is the type of the value in JSON Schema: boolean, integer or string.
	Type string `json:"type"`
}

// Settings lists the service's settings, and the settings of Temporal's clients that deployments
// need.
func Settings() []Setting {
	fields := reflect.VisibleFields(reflect.TypeFor[Config]())
	all := make([]Setting, 0, len(fields)+len(temporalSettings))
	for _, f := range fields {
		all = append(all, Setting{
			Name: f.Tag.Get("env"), Default: f.Tag.Get("envDefault"), Help: f.Tag.Get("help"),
			Required: f.Tag.Get("required") == "true", Secret: f.Tag.Get("mask") != "", Type: typeOf(f.Type),
		})
	}
	for _, s := range temporalSettings {
		s.Type = "string"
		all = append(all, s)
	}
	return all
}

func typeOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[bool]():
		return "boolean"
	case reflect.TypeFor[int](), reflect.TypeFor[int32]():
		return "integer"
	default:
		return "string"
	}
}

// names lists the settings that Load reads.
func names() []string {
	var all []string
	for _, s := range Settings() {
		if !s.Temporal {
			all = append(all, s.Name)
		}
	}
	return all
}

// temporalSettings are read by Temporal's envconfig package. The package has more settings, for
// codecs and for certificates in variables.
var temporalSettings = []Setting{
	{Temporal: true, Name: "TEMPORAL_ADDRESS", Default: "localhost:7233", Help: "host:port of Temporal"},
	{Temporal: true, Name: "TEMPORAL_NAMESPACE", Default: "default", Help: "namespace of the workflows"},
	{Temporal: true, Name: temporalAPIKey, Help: "key for Temporal Cloud; turns TLS on", Secret: true},
	{Temporal: true, Name: "TEMPORAL_TLS", Help: "true for TLS without a client certificate; each of the following turns TLS on too"},
	{Temporal: true, Name: "TEMPORAL_TLS_SERVER_CA_CERT_PATH", Help: "file with the authority of Temporal's certificate, unless the system has it"},
	{Temporal: true, Name: "TEMPORAL_TLS_SERVER_NAME", Help: "name in Temporal's certificate, if the address has another"},
	{Temporal: true, Name: "TEMPORAL_TLS_CLIENT_CERT_PATH", Help: "file with the client certificate, for mTLS"},
	{Temporal: true, Name: "TEMPORAL_TLS_CLIENT_KEY_PATH", Help: "file with its key"},
	{Temporal: true, Name: "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION", Help: "true accepts any name in Temporal's certificate"},
}

const temporalAPIKey = "TEMPORAL_API_KEY" //nolint:gosec // the name of a variable

// TemporalEnviron returns the environment for Temporal's envconfig package. It removes empty
// variables, because an empty file name would turn TLS on. It reads the API key from its file.
func TemporalEnviron(environ []string) ([]string, error) {
	key, err := Lookup(environ, temporalAPIKey)
	if err != nil {
		return nil, err
	}
	all := env.ToMap(environ)
	all[temporalAPIKey] = key
	for _, s := range temporalSettings {
		if all[s.Name] == "" {
			delete(all, s.Name)
		}
	}
	pairs := make([]string, 0, len(all))
	for name, value := range all {
		pairs = append(pairs, name+"="+value)
	}
	return pairs, nil
}
