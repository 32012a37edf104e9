package api_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"posthorn/handlers/api"
)

// TestTheExamplesOfErrorsGetTheirCodes sends the requests of docs/errors.md. The last one of each example is rejected
// with the code that it is an example of.
func TestTheExamplesOfErrorsGetTheirCodes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	tn := w.tenant("Acme")
	examples := regexp.MustCompile("(?s)\n### `([a-z0-9_]+)`\n([^#]*?)\n```http\n(.*?)\n```").FindAllStringSubmatch(string(page), -1)
	for _, example := range examples {
		var got *answer
		for request := range strings.SplitSeq(strings.ReplaceAll(example[3], "\n\nPOST ", "\x00POST "), "\x00") {
			head, body, _ := strings.Cut(request, "\n\n")
			lines := strings.Split(head, "\n")
			method, path, _ := strings.Cut(lines[0], " ")
			key, header := tn.key, []string{}
			if example[1] == "key_missing" {
				key = ""
			}
			for _, line := range lines[1:] {
				name, value, _ := strings.Cut(line, ": ")
				header = append(header, name, value)
			}
			got = w.do(method, path, key, body, header...)
		}
		var p api.Problem
		if got.into(&p); p.Code != example[1] || got.Status/100 != 4 {
			t.Errorf("the example of %s gets %d %s", example[1], got.Status, p.Code)
		}
	}
	if len(examples) < 20 {
		t.Errorf("%d examples: were they read?", len(examples))
	}
}
