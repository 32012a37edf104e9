package apply_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"posthorn/web/cli/apply"
)

func source(text string) apply.Source {
	return apply.Source{
		Name:     "posthorn.yaml",
		Text:     []byte(text),
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
	page, err := os.ReadFile("../../../docs/declarative.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(string(page))
	if block == nil {
		t.Fatal("the page has no file")
	}
	if _, err := apply.Decode(t.Context(), source(block[1])); err != nil {
		t.Error(err)
	}
}

func TestAllProblemsOfAFileAreTold(t *testing.T) {
	t.Parallel()
	_, err := apply.Decode(t.Context(), source("tenants:\n  - external_id: a\n    retention_days: x\n    endpoints:\n      - {external_id: e, colour: red}\n      - {external_id: f, secret: \"${NOBODY}\"}\n"))
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

// Nine lines of aliases expand to a billion values, and a long name is in the path of every value below it.
func TestASmallFileTakesLittleMemoryWhateverItNames(t *testing.T) {
	t.Parallel()
	aliases := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for _, c := range []string{"ab", "bc", "cd", "de", "ef", "fg", "gh", "hi", "ij"} {
		aliases += c[1:] + ": &" + c[1:] + " [*" + strings.Join(slices.Repeat([]string{c[:1]}, 9), ",*") + "]\n"
	}
	names := "tenants:\n  ? " + strings.Repeat("n", 1<<17) + "\n  : [" + strings.Repeat("x,", 1<<12) + "]\n"
	for what, c := range map[string]struct{ text, says string }{
		"aliases": {aliases + "tenants: *j\n", "aliases"},
		"names":   {names, "too long"},
	} {
		_, err := apply.Decode(t.Context(), source(c.text))
		var wrong *apply.InvalidError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Problems[0].Detail, c.says) {
			t.Errorf("%s: %.200v", what, err)
		}
	}
	few := "tenants:\n  - {external_id: a, endpoints: [&e {external_id: e, event_types: [a.b]}]}\n  - {external_id: b, endpoints: [*e]}\n"
	if _, err := apply.Decode(t.Context(), source(few)); err != nil {
		t.Errorf("an ordinary alias: %v", err)
	}
}

func TestReadingAFileEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := apply.Decode(ctx, source("tenants: [{external_id: a}]")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("tenants: [{external_id: a, endpoints: [{external_id: e, url_from: env:CUSTOMER}]}]")
	f.Add("a: &a [*a]")
	f.Add("platform: {settings: {x: [1]}}\ntenants: {}")
	f.Add("tenants: [{external_id: a, keys: [{name: k, scopes: {}}], members: [1]}]")
	f.Add("? [a]\n: b\n<<: {}")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := apply.Decode(t.Context(), source(text))
		var wrong *apply.InvalidError
		if err != nil && (!errors.As(err, &wrong) || len(wrong.Problems) == 0 || wrong.Problems[0].Line < 1) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
