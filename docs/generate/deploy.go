package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-faster/errors"

	"earshot/internal/config"
)

const (
	composeFile = "deploy/compose.yaml"
	chartFile   = "deploy/helm/earshot/values.schema.json"
)

// fixed are the settings with one right value in a container, and those for development.
var fixed = []string{config.Listen, config.HealthListen, config.MetricsListen, config.MailDir}

// notInChart are settings that the chart sets from other values.
var notInChart = []string{"EARSHOT_WORKER_DEPLOYMENT", "EARSHOT_WORKER_BUILD_ID"}

// durationsOfStop are the settings from which the chart computes the time for a stop. It understands
// only whole hours, minutes and seconds.
var durationsOfStop = []string{"EARSHOT_DRAIN_DELAY", "EARSHOT_DRAIN_TIMEOUT"}

// passedOn are the settings that deployments pass on without a value of their own.
func passedOn() (all []config.Setting) {
	for _, s := range config.Settings() {
		if !s.Temporal && !s.Secret && !s.Required && !slices.Contains(fixed, s.Name) {
			all = append(all, s)
		}
	}
	return all
}

// deployments returns the files of deployments with their lists of settings.
func deployments(root string) (map[string]string, error) {
	compose, err := os.ReadFile(filepath.Join(root, composeFile))
	if err != nil {
		return nil, errors.Wrap(err, "read the file for Compose")
	}
	var lines strings.Builder
	for _, s := range passedOn() {
		lines.WriteString("  " + s.Name + ":\n")
	}
	written, err := between(string(compose), "  # generated: settings\n", lines.String(), "  # end of settings\n")
	if err != nil {
		return nil, errors.Wrap(err, composeFile)
	}
	chart, err := os.ReadFile(filepath.Join(root, chartFile))
	if err != nil {
		return nil, errors.Wrap(err, "read the schema of the chart's values")
	}
	properties, err := chartProperties()
	if err != nil {
		return nil, err
	}
	head, settings, ok := strings.Cut(string(chart), "\n    \"settings\": {\n")
	if !ok {
		return nil, errors.Errorf("%s: there are no settings", chartFile)
	}
	settings, err = between(settings, "      \"properties\": {\n", properties, "\n      }\n")
	if err != nil {
		return nil, errors.Wrap(err, chartFile)
	}
	return map[string]string{composeFile: written, chartFile: head + "\n    \"settings\": {\n" + settings}, nil
}

// between replaces the lines between two lines.
func between(text, begin, lines, end string) (string, error) {
	before, rest, begun := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		return "", errors.Errorf("the lines %q and %q are missing", begin, end)
	}
	return before + begin + lines + end + after, nil
}

// property is the schema of a setting. The order of its members is that of the file.
type property struct {
	Type        string `json:"type"`
	Description string `json:"description"`
	Pattern     string `json:"pattern,omitempty"`
}

func chartProperties() (string, error) {
	all := passedOn()
	for _, s := range config.Settings() {
		if s.Name == "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION" { // the chart has other values for the rest of Temporal's
			all = append(all, s)
		}
	}
	var entries []string
	for _, s := range all {
		if slices.Contains(notInChart, s.Name) {
			continue
		}
		p := property{Type: s.Type, Description: s.Help}
		if slices.Contains(durationsOfStop, s.Name) {
			p.Pattern = "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
		}
		var text strings.Builder
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		e.SetIndent("        ", "  ")
		if err := e.Encode(p); err != nil {
			return "", errors.Wrap(err, "encode the schema of a setting")
		}
		entries = append(entries, "        \""+s.Name+"\": "+strings.TrimSpace(text.String()))
	}
	return strings.Join(entries, ",\n"), nil
}
