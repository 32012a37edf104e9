package docs_test

import (
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"posthorn/tools/need"
)

// samplesIn are the samples of the reference in a language, by operation.
func samplesIn(t *testing.T, language string) map[string]string {
	t.Helper()
	shown := regexp.MustCompile(`(?s)data-language="` + language + `"><pre tabindex="0"><code>(.*?)</code>`)
	samples := map[string]string{}
	for id, body := range operationPages(t, server(t)) {
		m := shown.FindStringSubmatch(body)
		if m == nil {
			t.Errorf("%s has no sample in %s", id, language)
			continue
		}
		samples[id] = html.UnescapeString(tags.ReplaceAllString(m[1], ""))
	}
	if len(samples) < 80 {
		t.Errorf("%d samples: were they read?", len(samples))
	}
	return samples
}

// written puts samples into files of a new folder.
func written(t *testing.T, samples map[string]string, suffix string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for id, text := range samples {
		if err := os.WriteFile(filepath.Join(dir, id+suffix), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// sdkTool is a file that make sdks installs or generates. What an earlier run has generated can be older than the
// contract, so these tests run there alone: it sets POSTHORN_SDK_TOOLS.
func sdkTool(t *testing.T, path string) string {
	t.Helper()
	if os.Getenv("POSTHORN_SDK_TOOLS") == "" {
		need.Missing(t, "make sdks", "It generates the packages and runs this test.")
	}
	full, err := filepath.Abs(filepath.Join("../..", path))
	if err == nil {
		_, err = os.Stat(full)
	}
	if err != nil {
		t.Fatal(err)
	}
	return full
}

// TestGoSamplesCompile type-checks every sample against the SDK, as the body of a function that returns an error.
func TestGoSamplesCompile(t *testing.T) {
	t.Parallel()
	program := "package main\n\nimport (\n\t\"context\"\n\t\"encoding/json\"\n\t\"fmt\"\n\t\"io\"\n\t\"os\"\n\t\"time\"\n\n\t\"posthorn/client\"\n)\n\n" +
		"var _, _, _ = json.RawMessage(nil), io.EOF, time.UTC\n\nfunc main() {}\n"
	for id, text := range samplesIn(t, "go") {
		if !strings.Contains(text, "c."+strings.ToUpper(id[:1])) && id != "emitEvent" {
			t.Errorf("%s: the sample calls something else:\n%s", id, text)
		}
		program += "\nfunc " + id + "(ctx context.Context) error {\n" + text + "\nreturn nil\n}\n"
	}
	dir := t.TempDir()
	file, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	at, err := filepath.Abs("samples/main.go")
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {at: file}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{file: []byte(program), overlay: replace} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "-overlay", overlay, "-o", os.DevNull, "./samples").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestGoSamplesLeaveNothingOut compares the members of each body with the fields of the Go sample.
func TestGoSamplesLeaveNothingOut(t *testing.T) {
	t.Parallel()
	python := samplesIn(t, "python")
	member := regexp.MustCompile(`(?m)^    "([a-z_]+)": `)
	for id, text := range samplesIn(t, "go") {
		plain := strings.ToLower(text)
		for _, m := range member.FindAllStringSubmatch(python[id], -1) {
			if name := strings.ReplaceAll(m[1], "_", ""); !strings.Contains(plain, "\t"+name+":") {
				t.Errorf("%s: the Go sample has no %s:\n%s", id, m[1], text)
			}
		}
	}
}

var (
	calledTS     = regexp.MustCompile(`posthorn\.(\w+)\(`)
	calledPython = regexp.MustCompile(`posthorn\.(\w+)[(,)]`)
	iteratedTS   = regexp.MustCompile(`iterate\("(\w+)"`)
)

// TestTypeScriptSamplesCallTheSDK parses each sample, and finds each method that it calls in the SDK.
func TestTypeScriptSamplesCallTheSDK(t *testing.T) {
	t.Parallel()
	samples := samplesIn(t, "ts")
	for id, text := range samples {
		m, iterated := calledTS.FindStringSubmatch(text), iteratedTS.FindStringSubmatch(text)
		switch {
		case strings.Contains(text, "fetch("), m == nil:
			t.Errorf("%s does not call the SDK:\n%s", id, text)
		case m[1] == "iterate" && iterated[1] == id, m[1] == "emit" && id == "emitEvent", m[1] == id:
		default:
			t.Errorf("%s calls %s", id, m[1])
		}
	}
	node := need.Program(t, "node")
	// One process for all: each sample is a function of its own.
	program := ""
	for id, text := range samples {
		_, text, _ = strings.Cut(text, "\n")
		program += "export async function " + id + "() {\n" + text + "\n}\n"
	}
	file := filepath.Join(t.TempDir(), "samples.mjs")
	if err := os.WriteFile(file, []byte("import { Posthorn } from \"posthorn\";\n"+program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), node, "--check", file).CombinedOutput(); err != nil {
		t.Errorf("node: %v\n%s", err, out)
	}
}

// TestTypeScriptSamplesHaveTheTypesOfTheSDK compiles every sample against the package.
func TestTypeScriptSamplesHaveTheTypesOfTheSDK(t *testing.T) {
	t.Parallel()
	sdkTool(t, "client/typescript/dist/index.d.ts")
	compiler := sdkTool(t, "client/typescript/node_modules/typescript/bin/tsc")
	dir := written(t, samplesIn(t, "ts"), ".mts")
	modules := filepath.Join(dir, "node_modules")
	if err := os.Mkdir(modules, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"posthorn": "client/typescript", "@types": "client/typescript/node_modules/@types"} {
		if err := os.Symlink(sdkTool(t, path), filepath.Join(modules, name)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.mts"))
	if err != nil {
		t.Fatal(err)
	}
	arguments := append([]string{
		compiler, "--noEmit", "--strict", "--target", "ES2022", "--module", "NodeNext", "--lib", "ES2022,DOM,DOM.Iterable,DOM.AsyncIterable", "--types", "node",
	}, files...)
	command := exec.CommandContext(t.Context(), "node", arguments...)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPythonSamplesCallTheSDK compiles each sample, and compares the method with the rule by which the SDK names them.
func TestPythonSamplesCallTheSDK(t *testing.T) {
	t.Parallel()
	samples := samplesIn(t, "python")
	for id, text := range samples {
		var called []string
		for _, m := range calledPython.FindAllStringSubmatch(text, -1) {
			called = append(called, strings.ReplaceAll(m[1], "_", ""))
		}
		if strings.Contains(text, "urllib") || !slices.Contains(called, strings.ToLower(id)) &&
			!(id == "emitEvent" && slices.Contains(called, "emit")) {
			t.Errorf("%s does not call its method of the SDK, but %v:\n%s", id, called, text)
		}
	}
	python := need.Program(t, "python3")
	if out, err := exec.CommandContext(t.Context(), python, "-m", "compileall", "-q", written(t, samples, ".py")).CombinedOutput(); err != nil {
		t.Errorf("python: %v\n%s", err, out)
	}
}

// TestPythonSamplesHaveTheTypesOfTheSDK checks every sample against the package with mypy.
func TestPythonSamplesHaveTheTypesOfTheSDK(t *testing.T) {
	t.Parallel()
	mypy, sdk := sdkTool(t, "client/python/.venv/bin/mypy"), sdkTool(t, "client/python/src")
	sdkTool(t, "client/python/src/posthorn/_operations.py")
	dir := written(t, samplesIn(t, "python"), ".py")
	files, err := filepath.Glob(filepath.Join(dir, "*.py"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), mypy, append([]string{"--no-error-summary", "--cache-dir", filepath.Join(dir, ".mypy_cache"), "--scripts-are-modules"}, files...)...)
	command.Env = append(os.Environ(), "MYPYPATH="+sdk)
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
