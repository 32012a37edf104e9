package endpoint_test

import (
	"encoding/json"
	"strings"
	"testing"

	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
)

// TestStoredVariablesStayWithTheirHost: who can change an endpoint, and not read its secrets, can't send them
// elsewhere.
func TestStoredVariablesStayWithTheirHost(t *testing.T) {
	t.Parallel()
	saved := good()
	patch := func(s *endpoint.Settings, url, transformation string) error {
		given := map[string]json.RawMessage{}
		if url != "" {
			given["url"], _ = json.Marshal(url)
		}
		if transformation != "" {
			given["transformation"] = json.RawMessage(transformation)
		}
		return s.Patch(given)
	}
	const with = `{"kind":"cel","expression":"vars.key","variables":{"key":"%"}}`
	if err := patch(&saved, "https://hooks.example.com/a", strings.Replace(with, "%", "secret", 1)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		url, transformation, value string
		ok                         bool
	}{
		"another path":                      {"https://hooks.example.com/b", "", "secret", true},
		"another host":                      {"https://evil.example.com/", "", "", false},
		"another host, with the marker":     {"https://evil.example.com/", strings.Replace(with, "%", "***", 1), "", false},
		"another host, with another value":  {"https://evil.example.com/", strings.Replace(with, "%", "other", 1), "other", true},
		"another host, with the same value": {"https://evil.example.com/", strings.Replace(with, "%", "secret", 1), "secret", true},
		"another host, and none":            {"https://evil.example.com/", `{"kind":"full","method":"PUT"}`, "", true},
		"another expression":                {"", strings.Replace(with, "%", "***", 1), "secret", true},
	} {
		s := saved.Clone()
		err := patch(&s, c.url, c.transformation)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && s.Transformation.Variables["key"] != c.value {
			t.Errorf("%s: the value is %q", name, s.Transformation.Variables["key"])
		}
	}
	if _, err := saved.Check(egress.Policy{}); err != nil {
		t.Error(err)
	}
	text, _ := json.Marshal(saved.Shown())
	if strings.Contains(string(text), "secret") {
		t.Errorf("shown as %s", text)
	}
}
