// Package observe checks the files of deploy/prometheus and deploy/grafana against each other,
// against docs/operating.md and against docs/runbook.md. The program's own tests check
// docs/operating.md against its metrics.
package observe

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const root = "../.."

var promQL = parser.NewParser(parser.Options{})

// others are metrics from elsewhere: Prometheus, the Go process, Temporal's SDK and Temporal's
// server. worker/metrics_test.go checks that the program serves those of the SDK.
var others = regexp.MustCompile(`^(up|process_\w+|go_goroutines|temporal_\w+|service_requests|service_error_with_type|` +
	`persistence_requests|persistence_error_with_type)$`)

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rules returns the rules of a file in order.
func rules(t *testing.T, name string) (all []rulefmt.Rule) {
	t.Helper()
	groups, problems := rulefmt.ParseFile(filepath.Join(root, "deploy", "prometheus", name), false, model.UTF8Validation, promQL, slog.New(slog.DiscardHandler))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// documented returns the metrics in the operators' table, with their labels.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `(earshot_\\w+)` \\|(.*?)\\| (.*)$")
	label := regexp.MustCompile("`(\\w+)`(?: = | $)")
	found := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(read(t, "docs", "operating.md"), -1) {
		var labels []string
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			labels = append(labels, l[1])
		}
		if strings.HasPrefix(m[3], "histogram") || strings.Contains(m[3], "the same up to") {
			found[m[1]+"_bucket"] = append([]string{"le"}, labels...)
			found[m[1]+"_sum"], found[m[1]+"_count"] = labels, labels
			continue
		}
		found[m[1]] = labels
	}
	return found
}

// expressions returns the expressions of the rules and dashboards, by their places.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, file := range []string{"records.yml", "alerts.yml"} {
		for _, r := range rules(t, file) {
			all[file+": "+r.Record+r.Alert+" "+r.Labels["severity"]] = r.Expr
		}
	}
	boards, err := filepath.Glob(filepath.Join(root, "deploy", "grafana", "dashboards", "*.json"))
	if err != nil || len(boards) != 4 {
		t.Fatal(boards, err)
	}
	for _, file := range boards {
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ RefID, Expr string }
			}
		}
		if err := json.Unmarshal([]byte(read(t, strings.TrimPrefix(file, root))), &board); err != nil {
			t.Fatal(file, err)
		}
		for _, p := range board.Panels {
			for _, target := range p.Targets {
				all[filepath.Base(file)+": "+p.Title+" "+target.RefID] = strings.ReplaceAll(target.Expr, "$__rate_interval", "1m")
			}
		}
	}
	if len(all) < 80 {
		t.Fatal("only", len(all))
	}
	return all
}

func TestRulesAndDashboardsAskForMetricsAndLabelsThatThereAre(t *testing.T) {
	known, recorded := documented(t), map[string]bool{}
	for _, r := range rules(t, "records.yml") {
		recorded[r.Record] = true
	}
	for at, text := range expressions(t) {
		expr, err := promQL.ParseExpr(text)
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			v, ok := n.(*parser.VectorSelector)
			if !ok || recorded[v.Name] || others.MatchString(v.Name) {
				return nil
			}
			labels, there := known[v.Name]
			if !there {
				t.Errorf("%s: there is no metric %s", at, v.Name)
			}
			for _, m := range v.LabelMatchers {
				if m.Name != "__name__" && m.Name != "job" && m.Name != "instance" && !slices.Contains(labels, m.Name) {
					t.Errorf("%s: %s has no label %s", at, v.Name, m.Name)
				}
			}
			return nil
		})
	}
}

func TestEveryAlertHasItsSectionInTheRunbookAndEverySectionItsAlert(t *testing.T) {
	var alerts, sections []string
	for _, r := range rules(t, "alerts.yml") {
		alerts = append(alerts, r.Alert)
		if want := "docs/runbook.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s leads to %q and not to %q", r.Alert, r.Annotations["runbook_url"], want)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^## (Earshot\w+)$`).FindAllStringSubmatch(read(t, "docs", "runbook.md"), -1) {
		sections = append(sections, m[1])
	}
	alerts = slices.Compact(alerts)
	if !slices.Equal(alerts, sections) {
		t.Errorf("alerts:   %v\nsections: %v", alerts, sections)
	}
}

func TestEveryAlertIsSeenToComeAndToStayAway(t *testing.T) {
	tests := read(t, "deploy", "prometheus", "alerts_test.yml")
	for _, r := range rules(t, "alerts.yml") {
		if !regexp.MustCompile(`alertname: ` + r.Alert + `\n +exp_alerts:\n`).MatchString(tests) {
			t.Errorf("no test has %s come", r.Alert)
		}
		if !regexp.MustCompile(`alertname: ` + r.Alert + `\n +exp_alerts: \[\]`).MatchString(tests) {
			t.Errorf("no test has %s stay away", r.Alert)
		}
	}
}
