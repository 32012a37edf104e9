package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"posthorn/web/cli"
)

type importedEntry struct {
	Name, Action, ID, Secret string
	Problem                  struct{ Code string }
}

func summary(list []importedEntry) string {
	var parts []string
	for _, one := range list {
		parts = append(parts, one.Name+" "+one.Action)
	}
	return strings.Join(parts, ", ")
}

func TestAnImportBringsCustomersWithTheirSecretsAndCanBeRunAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const customers = `{
		"event_types": [{"name":"order.completed","description":"An order was paid"},{"name":"order.placed"}],
		"endpoints": [
			{"external_id":"cust_1","url":"https://one.example.com/hooks?key=1","event_types":["order.*"],"format":"raw","prefix":"Shop","secret":"old-secret","retry_policy":{"name":"five"}},
			{"external_id":"cust_2","url":"https://two.example.com/hooks","custom_headers":{"Authorization":"Bearer x"},"metadata":{"plan":"pro"}},
			{"external_id":"cust_3","url":"https://127.0.0.9/hooks"}
		]}`
	bring := func(code int, file string, flags string) (list []importedEntry) {
		t.Helper()
		d.stdin = file
		r := d.run("import --json " + flags + " -")
		if r.code != code {
			t.Fatalf("exit code %d, want %d\n%s%s", r.code, code, r.stdout, r.stderr)
		}
		if err := json.Unmarshal([]byte(r.stdout), &list); err != nil {
			t.Fatalf("%s: %v", r.stdout, err)
		}
		return list
	}
	if got := summary(bring(cli.ExitFailed, customers, "--dry-run")); got != "order.completed created, order.placed created, cust_1 created, cust_2 created, cust_3 refused" {
		t.Errorf("dry run: %s", got)
	}
	first := bring(cli.ExitFailed, customers, "")
	if got := summary(first); got != "order.completed created, order.placed created, cust_1 created, cust_2 created, cust_3 refused" {
		t.Fatalf("first: %s", got)
	}
	if first[2].Secret != "" || !strings.HasPrefix(first[3].Secret, "whsec_") || first[4].Problem.Code != "endpoint_url_refused" {
		t.Errorf("first: %+v", first)
	}
	if text := d.ok(nil, "endpoints secret list "+first[2].ID); strings.Contains(text, "old-secret") || strings.Count(text, "hmac") != 1 {
		t.Errorf("the secret: %s", text)
	}
	if text := d.ok(nil, "endpoints get --json "+first[2].ID); !strings.Contains(text, `"format":"raw"`) || !strings.Contains(text, `"external_id":"cust_1"`) ||
		!strings.Contains(text, `"prefix":"Shop"`) {
		t.Errorf("the endpoint: %s", text)
	}
	good := strings.Replace(customers, "https://127.0.0.9/hooks", "https://three.example.com/hooks", 1)
	if got := summary(bring(cli.ExitOK, good, "")); got != "order.completed unchanged, order.placed unchanged, cust_1 unchanged, cust_2 unchanged, cust_3 created" {
		t.Errorf("again: %s", got)
	}
	changed := strings.NewReplacer("order.*", "order.placed", "was paid", "is paid").Replace(good)
	if got := summary(bring(cli.ExitOK, changed, "")); got != "order.completed updated, order.placed unchanged, cust_1 updated, cust_2 unchanged, cust_3 unchanged" {
		t.Errorf("changed: %s", got)
	}
	var all []thing
	if d.ok(&all, "endpoints list --json"); len(all) != 3 {
		t.Errorf("%d endpoints", len(all))
	}
}

func TestAnEntryThatIsWrongIsRefusedAloneAndAFileThatIsNoneWhole(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, file := range []string{`[]`, `{`, `{"endpoint":[]}`, `{}`, `{"endpoints":7}`} {
		d.stdin = file
		if r := d.run("import -"); r.code != cli.ExitUsage && file != `{}` {
			t.Errorf("%s: exit code %d\n%s", file, r.code, r.stderr)
		}
	}
	d.stdin = `{"endpoints":[{"url":"https://a.example.com"},{"external_id":"b","ur":"https://b.example.com"},{"external_id":"c","url":7},
		{"external_id":"d","url":"https://d.example.com"},{"external_id":"d","url":"https://e.example.com"}]}`
	r := d.run("import --json -")
	var list []importedEntry
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil || r.code != cli.ExitFailed {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if got := summary(list); got != " refused, b refused, c refused, d created, d refused" {
		t.Errorf("%s", got)
	}
}

func TestTheExampleOfTheMigrationPageCanBeBroughtIn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	page, err := os.ReadFile("../docs/migrate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```json\n")
	d.stdin, _, _ = strings.Cut(example, "```")
	var list []importedEntry
	if d.ok(&list, "import --json -"); summary(list) != "order.completed created, customer-42/hook-1 created" {
		t.Errorf("brought in: %+v", list)
	}
}
