package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/incidents"
	"posthorn/handlers/auth"
	"posthorn/tools/need"
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
	registry.MustRegister(homeMetrics(nil))
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

// A page or rule with a metric that nobody serves never fires, or always.
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
		if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") && !regexp.MustCompile("`[^`]*\\b"+name+
			"\\b").MatchString(expressions["monitoring.md"]) {
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
	// The rules' own tests: each alert rings in one of them and is silent in another.
	cases, err := os.ReadFile(filepath.Join("testdata", "alerts_test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Tests []struct {
			Asserts []struct {
				Name   string `yaml:"alertname"`
				Alerts []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal(cases, &file); err != nil {
		t.Fatal(err)
	}
	rings, silent := map[string]bool{}, map[string]bool{}
	for _, c := range file.Tests {
		for _, a := range c.Asserts {
			rings[a.Name], silent[a.Name] = rings[a.Name] || len(a.Alerts) > 0, silent[a.Name] || len(a.Alerts) == 0
		}
	}
	for _, a := range alerts {
		if !rings[a[1]] || !silent[a[1]] {
			t.Errorf("testdata/alerts_test.yml holds no case in which %s rings, or none in which it is silent", a[1])
		}
	}
	promtool := need.Program(t, "promtool")
	for _, args := range [][]string{{"check", "rules", filepath.Join(dir, "alerts.yml")}, {"test", "rules", filepath.Join("testdata", "alerts_test.yml")}} {
		if said, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, said)
		}
	}
}

// Each metric that an alert names is served by a process that has done nothing yet: a counter that begins with its
// first event has not increased by it.
func TestAFreshProcessServesEveryMetricThatAnAlertNames(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile(filepath.Join("..", "docs", "ops", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	p := program(t, newDatabase(t), Parts{Web: true, Worker: true})
	names := regexp.MustCompile(`\b(?:outbox_[a-z_]+|dead_letters|endpoints_disabled_total|mails\{|posthorn_[a-z_]+|clock_steps_total)`).FindAllString(string(rules), -1)
	// Requests and attempts are rates of existing series: before the first there can be no failure. Homes exist only if
	// they are configured (TestTheConsoleAndTheStatusPageShowAllHomes).
	later := []string{"posthorn_http_request_seconds_bucket", "posthorn_home_up"}
	if len(names) < 12 {
		t.Fatalf("the rules name only %q", names)
	}
	missing := names
	for deadline := time.Now().Add(patience); len(missing) > 0 &&
		time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		_, served := fetch(t, p.MetricsURL(), "")
		missing = slices.DeleteFunc(slices.Clone(missing), func(name string) bool {
			name = strings.TrimSuffix(name, "{")
			return slices.Contains(later, name) || strings.Contains(served, "\n"+name+" ") || strings.Contains(served, "\n"+name+"{")
		})
	}
	if len(missing) > 0 {
		t.Errorf("a fresh process does not serve %q", missing)
	}
	_, served := fetch(t, p.MetricsURL(), "")
	for _, reason := range health.Reasons() {
		if !strings.Contains(served, `endpoints_disabled_total{reason="`+string(reason)+`"} 0`) {
			t.Errorf("a fresh process does not serve endpoints_disabled_total for %s", reason)
		}
	}
	for _, route := range emitRoutes {
		if !strings.Contains(served, `posthorn_http_requests_total{method="POST",route="`+route+`",status="503"} 0`) {
			t.Errorf("a fresh process does not serve posthorn_http_requests_total of 503 for %s", route)
		}
	}
	known := map[string]bool{}
	for _, r := range table(routed{ready: &readiness{}, auth: auth.Deps{Now: time.Now}}) {
		known[r.Method+" "+r.Path] = true
	}
	for _, route := range emitRoutes {
		if !known["POST "+route] {
			t.Errorf("there is no route POST %s", route)
		}
	}
}

// What operators missed on their first day is on the operations pages, with the numbers that hold.
func TestOperatorsAreToldWhatTheirFirstDayShows(t *testing.T) {
	t.Parallel()
	defaults := endpoint.ReadDefaults(1, nil, nil).Settings
	for page, sentences := range map[string][]string{
		"deploy.md": {
			"New endpoints hold their deliveries until they are verified",
			fmt.Sprintf("at most %d requests a second, and %d concurrent requests", *defaults.RateLimit, defaults.MaxInFlight),
			"Posthorn does not rotate logs", "a few hundred bytes",
		},
		"backup.md":     {fmt.Sprintf("The first deliveries start about %d seconds after the workers", int(incidents.Silent.Seconds()))},
		"monitoring.md": {"scrape_configs:", "job_name: posthorn", "come from web processes; ", "everything else comes from workers"},
		"sizing.md":     {"Keep autovacuum on"},
	} {
		text, err := os.ReadFile(filepath.Join("..", "docs", "ops", page))
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.Join(strings.Fields(string(text)), " ")
		for _, sentence := range sentences {
			if !strings.Contains(plain, strings.TrimSpace(sentence)) {
				t.Errorf("docs/ops/%s does not say %q", page, sentence)
			}
		}
	}
}
