package codegen_test

import (
	"encoding/json"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"posthorn/domain/catalogue"
	"posthorn/tools/need"
	"posthorn/web/cli/codegen"
)

// entries have everything that a generator has to deal with.
var entries = []catalogue.Entry{
	{
		Name:        "order.completed",
		Description: "An order was paid for.\n*/ It's \"done\".",
		Schema: json.RawMessage(`{
		"type": "object", "required": ["order_id", "total", "status", "customer", "items", "note"],
		"properties": {
			"order_id": {"type": "string", "description": "Of the shop"},
			"total": {"type": "number"}, "count": {"type": "integer"}, "paid": {"type": "boolean"},
			"status": {"enum": ["paid", "partly-paid", "1st", "class"]}, "level": {"enum": [1, 2, 3]}, "rate": {"enum": [0.5, 1]},
			"kind": {"const": "order"}, "maybe": {"enum": ["a", null]},
			"customer": {"$ref": "#/$defs/customer"}, "payer": {"$ref": "#/$defs/customer"},
			"items": {"type": "array", "items": {"type": "object", "required": ["sku"], "properties": {"sku": {"type": "string"}, "price": {"type": ["number", "null"]}}}},
			"note": {"type": ["string", "null"]}, "labels": {"type": "object", "additionalProperties": {"type": "string"}},
			"either": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "both": {"type": ["string", "integer"]},
			"nullable": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/customer"}]},
			"pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]},
			"class": {"type": "string"}, "from": {"type": "string"}, "with space": {"type": "string"}, "a-b": {"type": "string"}, "a_b": {"type": "string"},
			"quote\"d": {"type": "string"}, "ünïcode": {"type": "string"}, "$ref": {"type": "string"}, "": {"type": "string"}, "-": {"type": "string"}, "1": {"type": "string"},
			"matrix": {"type": "array", "items": {"type": "array", "items": {"type": ["integer", "null"]}}},
			"any": true, "empty": {}, "open": {"type": "object"},
			"merged": {"allOf": [{"$ref": "#/$defs/customer"}, {"type": "object", "required": ["vip"], "properties": {"vip": {"type": "boolean"}}}]}
		},
		"$defs": {"customer": {"type": "object", "description": "Who pays", "required": ["id"], "properties": {"id": {"type": "string"}, "url": {"type": "string"}}}}
	}`),
		Versions: map[string]catalogue.Version{"2026-01": {Schema: json.RawMessage(`{"type": "object", "properties": {"id": {"type": "string"}}}`)}, "v2": {}},
	},
	{Name: "order_completed", Schema: json.RawMessage(`{"type": "string"}`)},
	{Name: "ping"},
	{Name: "1.decode", Deprecated: true, Schema: json.RawMessage(`{"$ref": "#/$defs/x", "$defs": {"x": {"type": "object", "properties": {"a": {"type": "integer"}}}}}`)},
	{Name: "event.type", Schema: json.RawMessage(`{"type": "array", "items": {"enum": ["x", "y"]}}`)},
	{Name: "event", Schema: json.RawMessage(`{"enum": ["on", "off"]}`)},
	{Name: "decode", Schema: json.RawMessage(`false`)},
}

const order = `{"order_id": "ord_1", "total": 4.5, "status": "partly-paid", "customer": {"id": "c"}, "items": [{"sku": "a", "price": null}, {"sku": "b", "price": 2}],
	"note": null, "either": 3, "labels": {"a": "b"}, "matrix": [[1, null]], "merged": {"id": "x", "vip": true}, "a-b": "1", "a_b": "2"}`

func generate(t *testing.T, in codegen.Language) string {
	t.Helper()
	out, err := codegen.Generate(in, "events", entries)
	if err != nil {
		t.Fatal(err)
	}
	again, err := codegen.Generate(in, "events", entries)
	if err != nil || string(again) != string(out) {
		t.Errorf("another time it is other code (%v)", err)
	}
	return string(out)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The file for Go passes go vet, and a program reads data with it.
func TestGoIsVettedAndReadsData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "go.mod", "module example.com/events\n\ngo 1.24\n")
	write(t, dir, "events.go", generate(t, codegen.Go))
	write(t, dir, "events_test.go", `package events

import "testing"

func TestData(t *testing.T) {
	v, err := Decode(TypeOrderCompleted, []byte(`+"`"+order+"`"+`))
	if err != nil {
		t.Fatal(err)
	}
	o := v.(*OrderCompleted)
	if o.OrderID != "ord_1" || o.Total != 4.5 || o.Status != OrderCompletedStatusIsPartlyPaid || o.Customer.ID != "c" || *o.Items[1].Price != 2 || o.Items[0].Price != nil {
		t.Errorf("%+v", o)
	}
	if o.Note != nil || string(o.Either) != "3" || o.Labels["a"] != "b" || *o.Matrix[0][0] != 1 || !o.Merged.Vip || o.Payer != nil || *o.AB != "1" || *o.AB2 != "2" {
		t.Errorf("%+v", o)
	}
	if v, err := DecodeVersion(TypeOrderCompleted, "2026-01", []byte(`+"`"+`{"id": "x"}`+"`"+`)); err != nil || *v.(*OrderCompletedVersion202601).ID != "x" {
		t.Errorf("%+v %v", v, err)
	}
	if _, err := Decode("none", nil); err == nil {
		t.Error("an unknown type was read")
	}
}
`)
	for _, args := range [][]string{{"vet", "."}, {"test", "."}} {
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir, c.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
}

// tool is a tool of the SDKs. make sdks installs it and sets POSTHORN_SDK_TOOLS, so that nothing is skipped there.
func tool(t *testing.T, path ...string) string {
	t.Helper()
	at, err := filepath.Abs(filepath.Join(path...))
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

func TestTypeScriptCompiles(t *testing.T) {
	t.Parallel()
	tsc := tool(t, "..", "..", "..", "client", "typescript", "node_modules", ".bin", "tsc")
	dir := t.TempDir()
	write(t, dir, "events.ts", generate(t, codegen.TypeScript))
	write(t, dir, "use.ts", `import type { EventVersions, OrderCompleted, WebhookEvent } from "./events";
const order: OrderCompleted = `+order+`;
export function total(event: WebhookEvent): number {
  if (event.type === "order.completed") return event.data.total + order.items.length;
  if (event.type === "order_completed") return event.data.length;
  return 0;
}
export const old: EventVersions["order.completed"]["2026-01"] = { id: "x" };
// @ts-expect-error There is no such field.
order.totl;
// @ts-expect-error A status of another shop.
order.status = "lost";
`)
	c := exec.CommandContext(t.Context(), tsc, "--strict", "--noEmit", "--target", "es2022", "--moduleResolution", "bundler", "--module", "es2022", "use.ts")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("tsc: %v\n%s\n%s", err, out, generate(t, codegen.TypeScript))
	}
}

func TestPythonIsCheckedAndRuns(t *testing.T) {
	t.Parallel()
	python := tool(t, "..", "..", "..", "client", "python", ".venv", "bin", "python")
	dir := t.TempDir()
	write(t, dir, "events.py", generate(t, codegen.Python))
	write(t, dir, "use.py", `import json
from events import OrderCompleted, WebhookEvent

def total(event: WebhookEvent) -> float:
    if event["type"] == "order.completed":
        return event["data"]["total"]
    return 0

order: OrderCompleted = json.loads('''`+strings.ReplaceAll(order, "\n", " ")+`''')
print(total({"id": "evt_1", "type": "order.completed", "timestamp": "2026-01-31T12:00:00.000Z", "data": order}))
`)
	write(t, dir, "wrong.py", "from events import OrderCompleted\n\ndef f(o: OrderCompleted) -> str:\n    return o[\"totl\"]\n")
	run := func(fails bool, args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), python, args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); (err != nil) != fails {
			t.Fatalf("python %v: %v\n%s\n%s", args, err, out, generate(t, codegen.Python))
		}
	}
	run(false, "-m", "mypy", "--strict", "use.py")
	run(true, "-m", "mypy", "--strict", "wrong.py")
	run(false, "use.py")
}

// The file for Go compiles for every schema.
func TestGoTypeChecksWhateverTheSchema(t *testing.T) {
	t.Parallel()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	build.Default.GOROOT = strings.TrimSpace(string(root)) // -trimpath leaves it out
	files := token.NewFileSet()
	check := types.Config{Importer: importer.ForCompiler(files, "source", nil)}
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) catalogue.Entry {
			text, err := json.Marshal(schemas(3).Draw(t, "schema"))
			if err != nil {
				t.Fatal(err)
			}
			return catalogue.Entry{Name: rapid.StringMatching(`[a-z0-9_]{1,6}(\.[a-zA-Z0-9-]{1,6}){0,2}`).Draw(t, "name"), Schema: text}
		}), 0, 4, func(e catalogue.Entry) string { return e.Name }).Draw(t, "entries")
		out, err := codegen.Generate(codegen.Go, "events", some)
		if err != nil {
			t.Fatalf("%v\n%+v", err, some)
		}
		parsed, err := parser.ParseFile(files, "events.go", out, 0)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if _, err := check.Check("events", files, []*ast.File{parsed}, nil); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, in := range []codegen.Language{codegen.TypeScript, codegen.Python} {
			if _, err := codegen.Generate(in, "", some); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// schemas are JSON schemas of all sorts.
func schemas(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := []string{"string", "number", "integer", "boolean", "enum", "any"}
		if depth > 0 {
			kinds = append(kinds, "object", "array", "anyOf", "allOf", "map", "null", "tuple")
		}
		inner := func() any { return schemas(depth-1).Draw(t, "inner") }
		switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
		case "enum":
			return map[string]any{"enum": rapid.SliceOfN(
				rapid.SampledFrom([]any{"a", "A", "-", "", nil, 1, true, 1.5, "ü", []any{}}),
				1,
				4,
			).Draw(t, "values")}
		case "any":
			return rapid.SampledFrom([]any{true, false, map[string]any{}}).Draw(t, "any")
		case "object":
			properties := map[string]any{}
			var required []string
			for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"id", "ID", "a b", "", "`", "\"", "type", "x", "X", "é"}),
				func(s string) string { return s }).Draw(t, "names") {
				properties[name] = inner()
				if rapid.Bool().Draw(t, "required") {
					required = append(required, name)
				}
			}
			return map[string]any{"type": "object", "properties": properties, "required": required, "description": rapid.String().Draw(t, "doc")}
		case "array":
			return map[string]any{"type": "array", "items": inner()}
		case "tuple":
			return map[string]any{"type": "array", "prefixItems": []any{inner()}}
		case "map":
			return map[string]any{"type": "object", "additionalProperties": inner()}
		case "null":
			return map[string]any{"type": []any{"null", rapid.SampledFrom([]string{"string", "object", "array"}).Draw(t, "type")}, "items": inner()}
		case "anyOf", "allOf":
			return map[string]any{kind: []any{inner(), inner()}}
		default:
			return map[string]any{"type": kind}
		}
	})
}
