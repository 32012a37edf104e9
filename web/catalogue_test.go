package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posthorn/web/cli"
)

// A team's continuous integration exports the catalogue, compares it, and writes types from it.
func TestTheCatalogueIsExportedComparedAndTyped(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	before := "tenants:\n  - name: Acme\n    event_types:\n      - name: order.completed\n        schema: {type: object, required: [id], properties: {id: {type: string}, total: {type: number}}}\n        example: {id: ord_1}\n"
	d.apply(before, "")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for format, word := range map[string]string{"openapi": `"openapi": "3.1.0"`, "asyncapi": `"asyncapi": "3.0.0"`, "json-schema": `"$defs"`} {
		text := d.ok(nil, "catalog export --format "+format)
		d.ok(nil, "catalog export --format "+format+" -o "+at(format))
		written, err := os.ReadFile(at(format))
		if err != nil || string(written) != text || !strings.Contains(text, word) || !strings.Contains(text, `"order.completed"`) ||
			!strings.Contains(text, `"Acme webhooks"`) {
			t.Errorf("%s: %s, %v", format, text, err)
		}
	}
	if out := d.ok(nil, "catalogue diff "+at("openapi")+" live"); out != "No differences.\n" {
		t.Errorf("the same differ: %s", out)
	}
	d.apply(strings.Replace(before, "total: {type: number}", "total: {type: number}, paid: {type: boolean}", 1), "")
	if out := d.ok(nil, "catalogue diff "+at("openapi")+" live"); out != "  order.completed data.paid: The field is new.\n" {
		t.Errorf("a new field: %s", out)
	}
	d.apply(strings.Replace(before, "total: {type: number}", "total: {type: string}", 1), "")
	var found []struct {
		Type, Path string
		Breaking   bool
	}
	r := d.run("catalogue diff --json " + at("openapi") + " live")
	if r.code != cli.ExitDiffers || !strings.Contains(r.stdout, `"path":"data.total"`) || !strings.Contains(r.stderr, "incompatible") {
		t.Errorf("another type: %d %s%s", r.code, r.stdout, r.stderr)
	}
	d.ok(&found, "catalogue diff --json live live")
	if len(found) != 0 {
		t.Errorf("live and live: %+v", found)
	}
	for lang, word := range map[string]string{"ts": "total?: string;", "go": "package shop", "python": "total: NotRequired[str]"} {
		file := filepath.Join(dir, "shop", "events."+lang)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		d.ok(nil, "types --lang "+lang+" -o "+file)
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), word) {
			t.Errorf("%s: %s, %v", lang, text, err)
		}
	}
	if out := d.ok(nil, "types --lang ts --from "+at("openapi")); !strings.Contains(out, "total?: number;") {
		t.Errorf("from a file: %s", out)
	}
	for line, want := range map[string]string{
		"catalogue diff " + at("asyncapi") + " live":            "must be an OpenAPI 3.1 document",
		"catalogue diff nothing.json live":                      "nothing.json",
		"types --lang go --package a-b":                         "--package",
		"catalog export --format raml":                          "openapi",
		"types --lang ts --from " + file(t, "{\"data\": [{}]}"): "entry 1 is no event type",
		"types --lang ts --from " + file(t, "a: [b"):            "neither JSON nor YAML",
	} {
		if r := d.run(line); r.code != cli.ExitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: %d %s", line, r.code, r.stderr)
		}
	}
}

// A schema whose members are stored in another order has no drift.
func TestTheOrderOfASchemasMembersIsNoDrift(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	list := file(t, `{"event_types": [{"name": "a.b", "schema": {"type": "object", "properties": {"z": {"maximum": 1.0}, "a": {}}}}]}`)
	d.ok(nil, "import file "+list)
	if p := d.apply(d.ok(nil, "export"), "--dry-run"); strings.Contains(p.String(), "event_type") {
		t.Errorf("planned %v", p)
	}
}
