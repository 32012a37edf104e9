package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"posthorn/tools/need"
)

var programs = regexp.MustCompile("(?ms)^```(go|python|js)\n(.*?)^```$")

// TestASecondProgramWrittenFromTheDocsEmitsListsReplaysAndVerifies runs the programs of docs/program.md unchanged.
// Python and Node run if they are installed.
func TestASecondProgramWrittenFromTheDocsEmitsListsReplaysAndVerifies(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/program.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("../client/example/main.go")
	if err != nil {
		t.Fatal(err)
	}
	found := programs.FindAllStringSubmatch(string(page), -1)
	if len(found) != 3 || found[0][2] != string(file) {
		t.Fatalf("%d programs; the first must be that of client/example", len(found))
	}
	d := newDesk(t)
	for _, program := range found {
		language, text := program[1], program[2]
		t.Run(language, func(t *testing.T) {
			command := commandOf(t, language, text)
			command.Env = append(os.Environ(), d.environ[:2]...)
			out, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range []string{"emitted evt_", "verified evt_", `"order_id"`, "listed dlv_", "replayed as dlv_"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("%q is not in\n%s", want, out)
				}
			}
			if n := strings.Count(string(out), "verified evt_"); n != 2 {
				t.Errorf("%d webhooks were verified\n%s", n, out)
			}
		})
	}
	var left []thing
	if d.ok(&left, "endpoints list --json"); len(left) != 0 {
		t.Errorf("%d endpoints are left behind", len(left))
	}
}

func commandOf(t *testing.T, language, text string) *exec.Cmd {
	t.Helper()
	if language == "go" {
		return exec.CommandContext(t.Context(), "go", "run", "posthorn/client/example")
	}
	tool, name := "python3", "program.py"
	if language == "js" {
		tool, name = "node", "program.mjs"
	}
	need.Programs(t, tool)
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), tool, file)
}
