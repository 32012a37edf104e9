//go:build e2e && unix

package e2e

import (
	"archive/zip"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheModulesCanBeNamedAndTheSDKFetched names both modules as an owner does, builds and tests the result, and
// fetches the SDK with the command of docs/cli.md in a program that has nothing else of Posthorn.
func TestTheModulesCanBeNamedAndTheSDKFetched(t *testing.T) {
	t.Parallel()
	const name = "example.com/you/posthorn"
	source, user, proxy := t.TempDir(), t.TempDir(), t.TempDir()
	// run returns the output of a command, which must succeed unless the test wants a refusal.
	run := func(dir string, environ []string, line ...string) (string, error) {
		t.Helper()
		command := exec.CommandContext(t.Context(), line[0], line[1:]...)
		command.Dir, command.Env = dir, append(append(os.Environ(), "GOWORK=off"), environ...)
		out, err := command.CombinedOutput()
		return string(out), err
	}
	must := func(dir string, environ []string, line ...string) string {
		t.Helper()
		out, err := run(dir, environ, line...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(line, " "), err, out)
		}
		return out
	}
	must(".", nil, "git", "clone", "-q", "../..", source)
	for _, bad := range []string{"", "posthorn", "example.com/you/post horn", "https://example.com/you"} {
		if out, err := run(source, nil, "make", "module", "MODULE="+bad); err == nil || !strings.Contains(out, "MODULE=example.com/you/posthorn") {
			t.Errorf("MODULE=%q: %v\n%s", bad, err, out)
		}
	}
	if changed := must(source, nil, "git", "status", "--short"); changed != "" {
		t.Fatalf("a refused name changed\n%s", changed)
	}
	must(source, nil, "make", "module", "MODULE="+name)
	// With the flags of the build: what others wrote is compiled already.
	flags := []string{"CGO_ENABLED=0", "GOFLAGS=-mod=readonly -trimpath -tags=nomsgpack"}
	must(source, flags, "go", "build", "-o", os.DevNull, "./web")
	must(source, flags, "go", "vet", "./domain/...", "./web/cli")
	must(source, flags, "go", "test", "./domain/signature")
	must(source, flags, "go", "test", "-run", "TestImportsPointOneWay", "./tools/house")
	must(filepath.Join(source, "client"), flags, "go", "test", "./...")

	publish(t, filepath.Join(source, "client"), filepath.Join(proxy, name, "client", "@v"))
	page, err := os.ReadFile(filepath.Join(source, "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	fetch := regexp.MustCompile(`(?m)^go get .*$`).FindAllString(string(page), -1)
	if len(fetch) != 1 {
		t.Fatalf("the page has %v", fetch)
	}
	cache := strings.TrimSpace(must(source, nil, "go", "env", "GOMODCACHE"))
	environ := []string{
		"GOPROXY=file://" + proxy + ",file://" + cache + "/cache/download",
		"GOMODCACHE=" + t.TempDir(),
		"GOFLAGS=-modcacherw",
		"GONOSUMDB=*",
	}
	must(user, environ, "go", "mod", "init", "example.com/shop")
	must(user, environ, strings.Fields(fetch[0])...)
	program := "package main\n\nimport \"" + name + "/client\"\n\nfunc main() { _, _ = client.New(\"https://posthorn.example.com\", \"phk_x\") }\n"
	if err := os.WriteFile(filepath.Join(user, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	must(user, environ, "go", "vet", ".")
	if modules := strings.Fields(must(user, environ, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")); strings.Contains(strings.Join(modules, " "), "gin") ||
		len(modules) < 3 {
		t.Errorf("the program is built from %v", modules)
	}
}

// publish writes a version of the module in a folder for GOPROXY=file://.
func publish(t *testing.T, module, to string) {
	t.Helper()
	path := strings.TrimSuffix(to[strings.Index(to, "example.com"):], "/@v")
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{"list": "v0.1.0\n", "v0.1.0.info": `{"Version":"v0.1.0"}`, "v0.1.0.mod": string(text)} {
		if err := os.WriteFile(filepath.Join(to, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := os.Create(filepath.Join(to, "v0.1.0.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	files := zip.NewWriter(archive)
	err = filepath.WalkDir(module, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		inside, err := files.Create(path + "@v0.1.0" + strings.TrimPrefix(file, module))
		if err == nil {
			_, err = inside.Write(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
}
