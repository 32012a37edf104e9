//go:build (e2e || soak) && unix

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTheSvixLibrariesDoTheirScenarioUnmodified runs Svix's own libraries, as their registries have them, against a
// server that runs. Each sends 1,000 messages to a receiver of its own, which verifies them with the library's
// Webhook class.
func TestTheSvixLibrariesDoTheirScenarioUnmodified(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(*arrival) int { return 200 })
	server := w.launch("serve", "serve").ready()
	w.serveAt(server)
	var made struct {
		Key string `json:"api_key"`
	}
	command(t, w.environ, w.at, &made, "key", "create", "--platform", "--scopes", "all", "--json")
	scripts, err := filepath.Abs("testdata/svix")
	if err != nil {
		t.Fatal(err)
	}
	for _, library := range []struct {
		name, line string
		install    func(dir string) *exec.Cmd
		run        func(dir string) *exec.Cmd
	}{
		{
			"go", "1", func(dir string) *exec.Cmd { return inDir(dir, "go", "build", "-mod=mod", "-o", "scenario", ".") },
			func(dir string) *exec.Cmd { return inDir(dir, "./scenario") },
		},
		{"node", "1", npm("svix@1"), nodeScript},
		{"node", "2", npm("svix@2"), nodeScript},
		{"python", "1", pip("svix<2"), python},
		{"python", "2", pip("svix>=2,<3"), python},
	} {
		t.Run(library.name+" "+library.line, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(scripts)); err != nil {
				t.Fatal(err)
			}
			if library.name == "go" {
				dir = filepath.Join(dir, "go")
			}
			if out, err := within(t, 3*time.Minute, library.install(dir)); err != nil {
				t.Skipf("SKIPPED, NOT TESTED: the library can't be installed, its registry is out of reach: %v\n%s", err, out)
			}
			run := library.run(dir)
			run.Env = append(
				os.Environ(),
				"SVIX_URL="+server.url+"/svix",
				"SVIX_TOKEN="+made.Key,
				"SVIX_LINE="+library.line,
				"SVIX_MESSAGES=1000",
				"PYTHONPATH="+filepath.Join(dir, "packages"),
			)
			out, err := within(t, 8*time.Minute, run)
			if err != nil || !strings.Contains(out, "scenario done") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func inDir(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	return cmd
}

func npm(spec string) func(string) *exec.Cmd {
	return func(dir string) *exec.Cmd {
		return inDir(dir, "npm", "install", "--no-audit", "--no-fund", "--prefix", dir, spec)
	}
}

func nodeScript(dir string) *exec.Cmd { return inDir(dir, "node", "node.mjs") }

func pip(spec string) func(string) *exec.Cmd {
	return func(dir string) *exec.Cmd {
		return inDir(dir, "python3", "-m", "pip", "install", "--quiet", "--target", filepath.Join(dir, "packages"), spec)
	}
}

func python(dir string) *exec.Cmd { return inDir(dir, "python3", "python.py") }

// within runs a command for a while at most and returns what it printed.
func within(t *testing.T, most time.Duration, cmd *exec.Cmd) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
	})
	defer stop()
	out, err := cmd.CombinedOutput()
	return string(out), err
}
