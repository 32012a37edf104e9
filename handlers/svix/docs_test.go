package svix

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTheTableOfTheDocsNamesEveryRoute compares docs/svix.md with the routes, both ways.
func TestTheTableOfTheDocsNamesEveryRoute(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/svix.md")
	if err != nil {
		t.Fatal(err)
	}
	operations, _, _ := strings.Cut(string(text), "## Limits")
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /[^`]*)` \\| (.*) \\|$").FindAllStringSubmatch(operations, -1) {
		documented[row[1]] = row[2]
	}
	named := strings.NewReplacer(":tenant_id", "{app_id}", ":endpoint_id", "{endpoint_id}", ":msg_id", "{msg_id}", ":attempt_id", "{attempt_id}",
		":name", "{event_type_name}", ":consumer", "{consumer_id}", ":task_id", "{task_id}")
	for _, o := range (&svix{}).operations() {
		key := o.Method + " " + named.Replace(o.Path)
		says, ok := documented[key]
		switch {
		case !ok:
			t.Errorf("docs/svix.md does not name %s", key)
		case o.Handler == nil && says != "400: "+o.Instead:
			t.Errorf("%s: docs/svix.md says %q, not %q", key, says, "400: "+o.Instead)
		}
		delete(documented, key)
	}
	for key := range documented {
		t.Errorf("docs/svix.md names %s, which is no route", key)
	}
}
