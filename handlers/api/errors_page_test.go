package api_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"posthorn/handlers/api"
)

// TestTheExamplesOfErrorsGetTheirCodes sends the requests of docs/errors.md. The last one of each example has the
// response that is below it.
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
		requests, response, _ := strings.Cut(example[3], "\n\nHTTP/1.1 ")
		var got *answer
		for request := range strings.SplitSeq(strings.ReplaceAll(requests, "\n\nPOST ", "\x00POST "), "\x00") {
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
		got.problem(got.Status, example[1]).into(&p)
		if want := strings.Fields(fmt.Sprint(p.Status, " ", http.StatusText(p.Status), " ", p.Detail)); strings.Join(want, " ") != strings.Join(strings.Fields(response), " ") {
			t.Errorf("the response of %s is\n\nHTTP/1.1 %s", example[1], strings.Join(want, " "))
		}
	}
	if len(examples) < 20 {
		t.Errorf("%d examples: were they read?", len(examples))
	}
}
