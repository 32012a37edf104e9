package main

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// composition is what of docs/ops/compose.yaml is held against what there is.
type composition struct {
	Services map[string]struct {
		Image       string
		Command     []string
		Environment map[string]string
		Ports       []string
		Volumes     []string
		DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
		Healthcheck struct{ Test []string }
		Deploy      struct{ Replicas int }
		Stop        string `yaml:"stop_grace_period"`
	}
	Volumes map[string]any
}

// given are the variables that compose.yaml requires, with example values.
var given = map[string]string{
	"POSTHORN_BASE_URL":   "https://posthorn.example.com",
	"POSTHORN_MASTER_KEY": testMasterKey,
	"POSTHORN_PASSWORD":   "0af3",
	"POSTGRES_PASSWORD":   "1be4",
	"POSTHORN_VERSION":    "",
}

func readComposition(t *testing.T) composition {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "ops", "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	filled := regexp.MustCompile(`\$\{(\w+)(?::\?|:-(\w+))\}`).ReplaceAllStringFunc(string(text), func(s string) string {
		name, otherwise, _ := strings.Cut(strings.Trim(s, "${}"), ":")
		value, known := given[name]
		if !known {
			t.Errorf("compose.yaml asks for %s, which its head does not explain", name)
		}
		asked[name] = true
		if value == "" {
			return strings.TrimPrefix(otherwise, "-")
		}
		return value
	})
	if len(asked) != len(given) || strings.Contains(filled, "${") {
		t.Errorf("compose.yaml asks for %v", slices.Sorted(maps.Keys(asked)))
	}
	var c composition
	if err := yaml.Unmarshal([]byte(filled), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTheComposeFileNamesWhatThereIs: services that need each other, volumes, files, commands, and variables that
// this program reads.
func TestTheComposeFileNamesWhatThereIs(t *testing.T) {
	t.Parallel()
	c := readComposition(t)
	if names := slices.Sorted(maps.Keys(c.Services)); !slices.Equal(names, []string{"postgres", "web", "worker"}) {
		t.Fatalf("the services are %q", names)
	}
	dir := filepath.Join("..", "docs", "ops")
	for name, s := range c.Services {
		for on, needs := range s.DependsOn {
			if other, known := c.Services[on]; !known || needs.Condition != "service_healthy" || len(other.Healthcheck.Test) < 2 {
				t.Errorf("%s waits for %s, which is not there or does not say when it is well", name, on)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if _, declared := c.Volumes[from]; declared {
				continue
			}
			if _, err := os.Stat(filepath.Join(dir, from)); err != nil || !strings.HasPrefix(from, "./") {
				t.Errorf("%s mounts %s, which is neither a volume nor a file", name, from)
			}
		}
	}
	for name, part := range map[string]string{"web": "web", "worker": "worker"} {
		s := c.Services[name]
		if !slices.Equal(s.Command, []string{part}) || s.Deploy.Replicas < 2 || s.DependsOn["postgres"].Condition == "" {
			t.Errorf("%s runs %q, %d times", name, s.Command, s.Deploy.Replicas)
		}
		environ := imageEnviron(t) // the image's own variables; the service's come on top
		for variable, value := range s.Environment {
			environ = append(environ, variable+"="+value)
		}
		cfg, err := loadConfig(environ)
		if err != nil || len(cfg.Suspects) > 0 || cfg.embedded() {
			t.Fatalf("%s is configured wrongly: %v, %v", name, err, cfg.Suspects)
		}
		for variable := range s.Environment {
			if !slices.Contains(variables(), variable) {
				t.Errorf("%s sets %s, which nothing reads", name, variable)
			}
		}
		_, port, _ := net.SplitHostPort(cfg.Addr)
		for _, published := range s.Ports {
			if !strings.HasPrefix(published, "127.0.0.1:") || !strings.HasSuffix(published, ":"+port) {
				t.Errorf("%s publishes %s and listens on %s", name, published, cfg.Addr)
			}
		}
	}
	if len(c.Services["web"].Ports) != 1 || len(c.Services["worker"].Ports) != 0 {
		t.Error("the web processes can't be reached, or the workers can")
	}
}

// imageEnviron is what tools/image sets in the container image.
func imageEnviron(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "tools", "image", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	var environ []string
	for _, m := range regexp.MustCompile(`"(POSTHORN_[A-Z_]+=[^"]*)"`).FindAllSubmatch(text, -1) {
		environ = append(environ, string(m[1]))
	}
	if len(environ) == 0 {
		t.Fatal("the image sets no variable")
	}
	return environ
}

// TestUnitsRunCommandsThatExist: what the files for systemd start is a command of this program.
func TestUnitsRunCommandsThatExist(t *testing.T) {
	t.Parallel()
	starts := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/posthorn ([a-z]+)`)
	for _, name := range []string{"posthorn-web.service", "posthorn-worker.service"} {
		text, err := os.ReadFile(filepath.Join("..", "docs", "ops", name))
		if err != nil {
			t.Fatal(err)
		}
		m := starts.FindSubmatch(text)
		if m == nil || !slices.Contains([]string{"serve", "web", "worker"}, string(m[1])) {
			t.Errorf("%s starts %q", name, m)
		}
	}
}
