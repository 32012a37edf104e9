package docs_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"posthorn/domain/transform"
)

// TestTheTransformationsOfThePageCanBeUsed checks each example of docs/transformations.md, and that the page names each
// preset with its variables.
func TestTheTransformationsOfThePageCanBeUsed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("transformations.md")
	if err != nil {
		t.Fatal(err)
	}
	page, tried := string(text), 0
	for _, block := range regexp.MustCompile("(?s)\n```(json|cel)\n(.*?)```").FindAllStringSubmatch(page, -1) {
		x := &transform.Transformation{Kind: transform.CEL, Expression: block[2]}
		if block[1] == "json" {
			var in struct {
				Transformation *transform.Transformation `json:"transformation"`
			}
			if err := json.Unmarshal([]byte(block[2]), &in); err != nil {
				t.Fatal(err)
			}
			x = in.Transformation
		}
		if err := x.Check(true); err != nil {
			t.Errorf("%s: %v", block[2], err)
		}
		tried++
	}
	if tried < 2 {
		t.Errorf("%d examples were tried", tried)
	}
	for _, p := range transform.Presets() {
		_, row, found := strings.Cut(page, "| `"+p.Name+"` |")
		row, _, _ = strings.Cut(row, "\n")
		if !found {
			t.Errorf("the page lacks the preset %s", p.Name)
		}
		for _, v := range p.Variables {
			if !strings.Contains(row, "`"+v.Name+"`") {
				t.Errorf("the row of %s lacks the variable %s", p.Name, v.Name)
			}
		}
	}
}
