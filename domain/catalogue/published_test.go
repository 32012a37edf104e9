package catalogue

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"posthorn/tools/need"
)

// tool is a tool of the SDKs. make sdks installs it and sets POSTHORN_SDK_TOOLS, so that nothing is skipped there.
func tool(t *testing.T, path ...string) string {
	t.Helper()
	at, err := filepath.Abs(filepath.Join(append([]string{"..", "..", "client"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(at); err != nil {
		if os.Getenv("POSTHORN_SDK_TOOLS") != "" {
			t.Fatalf("%s is missing", at)
		}
		need.Missing(t, "make sdks", "It installs %s and runs this test.", at)
	}
	return at
}

// The AsyncAPI document fits the schema that the AsyncAPI initiative publishes, with its references resolved one level:
// that is where messages and channels are.
func TestThePublishedAsyncAPIDocumentFitsItsSchema(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(tool(t, "typescript", "node_modules", "@asyncapi", "specs", "schemas", "3.0.0.json"))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("http://asyncapi.com/definitions/3.0.0/asyncapi.json", spec); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("http://asyncapi.com/definitions/3.0.0/asyncapi.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(publish(t, AsyncAPI)))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(doc); err != nil {
		t.Errorf("%v", err)
	}
	broken, _ := doc.(map[string]any)
	broken["operations"] = map[string]any{"send": map[string]any{"action": "throw"}}
	if compiled.Validate(doc) == nil {
		t.Error("the schema accepts anything")
	}
}

// The OpenAPI document passes openapi-spec-validator.
func TestThePublishedOpenAPIDocumentPassesAValidator(t *testing.T) {
	t.Parallel()
	python := tool(t, "python", ".venv", "bin", "python")
	path := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(path, publish(t, OpenAPI), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), python, "-m", "openapi_spec_validator", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
