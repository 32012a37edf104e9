package client_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAProgramCanImportTheSDKAsTheDocsSay runs the commands of docs/cli.md in a module of its own and builds a
// program with them.
func TestAProgramCanImportTheSDKAsTheDocsSay(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^go (mod|get) .*$`).FindAllString(string(page), -1)
	if len(commands) != 2 {
		t.Fatalf("the page has %v", commands)
	}
	source, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(line string) {
		t.Helper()
		words := strings.Fields(strings.ReplaceAll(line, "../posthorn", source))
		c := exec.CommandContext(t.Context(), words[0], words[1:]...)
		// The dependencies of the client are in the cache, or this test would not have been built.
		c.Dir, c.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOSUMDB=off", "GOWORK=off")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	run("go mod init example.com/shop")
	for _, line := range commands {
		run(line)
	}
	text := "package main\n\nimport \"posthorn/client\"\n\nfunc main() { _, _ = client.New(\"https://posthorn.example.com\", \"phk_x\") }\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run("go vet .")
}
