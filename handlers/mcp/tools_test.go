package mcp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"posthorn/handlers/api"
	"posthorn/handlers/mcp"
)

// TestEveryToolIsACallThatTheAPIHas compares the table with the routes and the contract: the path, the scope, and each
// argument with its values.
func TestEveryToolIsACallThatTheAPIHas(t *testing.T) {
	t.Parallel()
	contract, err := openapi3.NewLoader().LoadFromFile("../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	routes := map[string]string{}
	for _, r := range api.Routes(api.Deps{}) {
		routes[r.Method+" "+r.Path] = string(r.Access.Scope)
	}
	named := strings.NewReplacer("{", ":", "}", "")
	for _, tool := range mcp.Rows() {
		if scope, is := routes[tool.Method+" /api/v1"+named.Replace(tool.Path)]; !is || scope != string(tool.Scope) {
			t.Errorf("%s: the API has no %s %s with the scope %s", tool.Name, tool.Method, tool.Path, tool.Scope)
			continue
		}
		item := contract.Paths.Value(tool.Path)
		operation := item.GetOperation(tool.Method)
		known := map[string][]any{}
		for _, p := range slices.Concat(item.Parameters, operation.Parameters) {
			known[p.Value.Name] = p.Value.Schema.Value.Enum
		}
		if body := operation.RequestBody; body != nil {
			for name, field := range body.Value.Content["application/json"].Schema.Value.Properties {
				known[name] = field.Value.Enum
			}
		}
		for name, choices := range tool.Choices {
			values, is := known[name]
			if !is {
				t.Errorf("%s: the API does not know %s", tool.Name, name)
			}
			if choices != nil && fmt.Sprint(choices) != fmt.Sprint(values) {
				t.Errorf("%s: %s is one of %v, not of %v", tool.Name, name, values, choices)
			}
		}
	}
}
