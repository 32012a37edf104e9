package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"posthorn/worker"
	"posthorn/worker/mail"
)

// metricLabels is every metric that a process can serve, with its labels.
func metricLabels(t *testing.T) map[string][]string {
	t.Helper()
	registry := newRegistry()
	newHTTPMetrics(registry)
	worker.New(worker.Config{Registry: registry})
	mail.New(mail.Config{Registry: registry})
	descriptions := make(chan *prometheus.Desc, 1000)
	registry.Describe(descriptions)
	close(descriptions)
	shape := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	all := map[string][]string{}
	for d := range descriptions {
		m := shape.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("a description of another shape: %s", d)
		}
		all[m[1]] = strings.Split(m[2], ",")
	}
	return all
}

// A page or rule that names a metric which nobody serves rings never, or always.
func TestOperationsNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	known := metricLabels(t)
	dir := filepath.Join("..", "docs", "ops")
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "grafana.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &dashboard); err != nil || len(dashboard.Panels) < 10 {
		t.Fatalf("%d panels, %v", len(dashboard.Panels), err)
	}
	expressions := map[string]string{}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			expressions["panel "+p.Title] += target.Expr + "\n"
		}
	}
	for _, name := range []string{"alerts.yml", "monitoring.md"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		expressions[name] = string(text)
	}
	metric := regexp.MustCompile(`\b(?:attempts?_|deliveries_|outbox_|dead_|endpoints_|posthorn_)[a-z_]+(?:\{[^}]*\})?|\bmails(?:_total)?\{[^}]*\}`)
	label := regexp.MustCompile(`([a-z_]+)(?:=|!=|,|\}|$)`)
	for where, text := range expressions {
		found := metric.FindAllString(text, -1)
		if len(found) == 0 {
			t.Errorf("%s names no metric", where)
		}
		for _, one := range found {
			name, selector, _ := strings.Cut(strings.TrimSuffix(one, "}"), "{")
			labels, exists := known[strings.TrimSuffix(name, "_bucket")]
			if !exists {
				t.Errorf("%s names %s, which nobody serves", where, name)
				continue
			}
			for part := range strings.SplitSeq(selector, ",") {
				if m := label.FindStringSubmatch(strings.TrimSpace(part)); m != nil && !slices.Contains(labels, m[1]) {
					t.Errorf("%s: %s has no label %q but %q", where, name, m[1], labels)
				}
			}
		}
	}
	for name := range known {
		if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") && !regexp.MustCompile("`[^`]*\\b"+name+"\\b").MatchString(expressions["monitoring.md"]) {
			t.Errorf("monitoring.md does not explain %s, which is served", name)
		}
	}
}

func TestEveryAlertSaysWhatToDo(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "docs", "ops")
	rules, err := os.ReadFile(filepath.Join(dir, "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	alerts := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	if len(alerts) < 5 {
		t.Fatalf("%d alerts", len(alerts))
	}
	for _, a := range alerts {
		if !strings.Contains(string(page), "**"+a[1]+".**") {
			t.Errorf("monitoring.md does not say what to do about %s", a[1])
		}
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is not on this machine: the rules' syntax is not checked")
		return
	}
	if said, err := exec.CommandContext(t.Context(), promtool, "check", "rules", filepath.Join(dir, "alerts.yml")).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, said)
	}
}
