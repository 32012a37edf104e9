package apply_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"posthorn/client/apply"
)

func source(text string) apply.Source {
	return apply.Source{
		Name: "posthorn.yaml", Text: []byte(text),
		Variable: func(name string) (string, bool) { return "value-of-" + name, strings.HasPrefix(name, "CUSTOMER") },
		ReadFile: func(name string) ([]byte, error) {
			if name != "schemas/order.json" {
				return nil, os.ErrNotExist
			}
			return []byte(`{"type": "object"}`), nil
		},
	}
}

// The file of docs/declarative.md is one that is read.
func TestTheFileOfThePageIsRead(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/declarative.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(string(page))
	if block == nil {
		t.Fatal("the page has no file")
	}
	if _, err := apply.Decode(source(block[1])); err != nil {
		t.Error(err)
	}
}

func TestAllProblemsOfAFileAreTold(t *testing.T) {
	t.Parallel()
	_, err := apply.Decode(source("tenants:\n  - external_id: a\n    retention_days: x\n    endpoints:\n      - {external_id: e, colour: red}\n      - {external_id: f, secret: \"${NOBODY}\"}\n"))
	var wrong *apply.InvalidError
	if !errors.As(err, &wrong) || len(wrong.Problems) != 3 {
		t.Fatalf("%v", err)
	}
	for i, line := range []int{3, 5, 6} {
		if wrong.Problems[i].Line != line {
			t.Errorf("problem %d is in line %d: %s", i, wrong.Problems[i].Line, wrong.Problems[i].Detail)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("tenants: [{external_id: a, endpoints: [{external_id: e, url_from: env:CUSTOMER}]}]")
	f.Add("a: &a [*a]")
	f.Add("platform: {settings: {x: [1]}}\ntenants: {}")
	f.Add("tenants: [{external_id: a, keys: [{name: k, scopes: {}}], members: [1]}]")
	f.Add("? [a]\n: b\n<<: {}")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := apply.Decode(source(text))
		var wrong *apply.InvalidError
		if err != nil && (!errors.As(err, &wrong) || len(wrong.Problems) == 0 || wrong.Problems[0].Line < 1) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
