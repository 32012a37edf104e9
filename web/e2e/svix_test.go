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

	"posthorn/tools/need"
)

// svixHost is the host of the Svix API for the libraries that drop the path of the server's address.
const svixHost = "svix.example.com"

// library is one of Svix's, with a program that does the scenario with it.
type library struct {
	name     string
	folder   string // of testdata/svix
	needs    string // the program that brings and runs it
	hostOnly bool   // it drops the path of the server's address
	prepare  [][]string
	run      []string
	slow     bool // its program takes minutes to compile
}

// jars lays an artifact of Maven, and what it needs, into a folder.
func jars(artifact, folder string) []string {
	return []string{
		"mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies", "-DoutputDirectory=" + folder,
		"-f", artifact + ".xml",
	}
}

// svixLibraries are the libraries as their registries have them.
var svixLibraries = []library{
	{
		name:     "go 1",
		folder:   "go",
		needs:    "go",
		hostOnly: true,
		prepare:  [][]string{{"go", "build", "-mod=mod", "-o", "scenario", "."}},
		run:      []string{"./scenario"},
	},
	{name: "node 1", needs: "npm", prepare: [][]string{npm("svix@1")}, run: []string{"node", "node.mjs"}},
	{name: "node 2", needs: "npm", prepare: [][]string{npm("svix@2")}, run: []string{"node", "node.mjs"}},
	{name: "python 1", needs: "python3", prepare: [][]string{pip("svix<2")}, run: []string{"python3", "python.py"}},
	{name: "python 2", needs: "python3", prepare: [][]string{pip("svix>=2,<3")}, run: []string{"python3", "python.py"}},
	{
		name:     "java 1",
		folder:   "java",
		needs:    "mvn",
		hostOnly: true,
		prepare:  [][]string{jars("svix", "lib")},
		run:      []string{"java", "-cp", "lib/*", "Scenario.java"},
	},
	{
		name:     "kotlin 1",
		folder:   "kotlin",
		needs:    "mvn",
		hostOnly: true,
		prepare: [][]string{
			jars("svix", "lib"),
			jars("compiler", "compiler"),
			{"sh", "-c", "java -cp 'compiler/*' org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -no-stdlib -no-reflect " +
				`-classpath "$(ls lib/*.jar | tr '\n' ':')" -d out scenario.kt`},
		},
		run:  []string{"java", "-cp", "out:lib/*:compiler/*", "ScenarioKt"},
		slow: true,
	},
	{
		name:    "rust 2",
		folder:  "rust",
		needs:   "cargo",
		prepare: [][]string{{"cargo", "build", "-q"}},
		run:     []string{"target/debug/scenario"},
		slow:    true,
	},
}

func npm(spec string) []string { return []string{"npm", "install", "--no-audit", "--no-fund", spec} }

func pip(spec string) []string {
	return []string{"python3", "-m", "pip", "install", "--quiet", "--target", "packages", spec}
}

// TestTheSvixLibrariesDoTheirScenarioUnmodified runs Svix's own libraries, as their registries have them, against a
// server that runs. Those for Python call every operation of docs/svix.md. Each verifies what it receives with the
// library's Webhook class; those for Node and Python send 1,000 messages. The table of docs/svix.md that says which
// library called what is compared with the calls.
func TestTheSvixLibrariesDoTheirScenarioUnmodified(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(*arrival) int { return 200 })
	w.environ = append(w.environ, "POSTHORN_SVIX_HOST="+svixHost)
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
	receiver := newSvixReceiver(t)
	table := newSvixTable(t)
	for _, l := range svixLibraries {
		if l.slow && !thorough {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			need.Programs(t, l.needs)
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(scripts, l.folder))); err != nil {
				t.Fatal(err)
			}
			for _, step := range l.prepare {
				out, err := within(t, 12*time.Minute, inDir(dir, step...))
				need.Reached(t, "the registry of "+l.needs, err, []byte(out))
			}
			address := table.record(t, server.url, l)
			run := inDir(dir, l.run...)
			run.Env = append(
				os.Environ(),
				"SVIX_URL="+address,
				"SVIX_TOKEN="+made.Key,
				"SVIX_LINE="+l.name[len(l.name)-1:],
				"SVIX_NAME="+strings.ReplaceAll(l.name, " ", "-"),
				"SVIX_RECEIVER="+receiver,
				"SVIX_MESSAGES=1000",
				"PYTHONPATH="+filepath.Join(dir, "packages"),
			)
			out, err := within(t, 8*time.Minute, run)
			if err != nil || !strings.Contains(out, "scenario done") {
				t.Errorf("%v\n%s", err, out)
				return
			}
			table.done(l)
		})
	}
	table.compare(t)
}

func inDir(dir string, line ...string) *exec.Cmd {
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = dir
	return cmd
}

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
