package api_test

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"posthorn/domain/id"
)

// typed are the curl commands of a page, each on one line.
func typed(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, block := range regexp.MustCompile("(?s)\n```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", "")) {
			if strings.HasPrefix(line, "curl ") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}

// TestTheCommandsOfTheGuidesCanBeTyped runs the curl commands of docs/migrate.md, docs/outbox.md, and
// docs/authentication.md.
func TestTheCommandsOfTheGuidesCanBeTyped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	page, err := os.ReadFile("../../docs/migrate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```json\n")
	example, _, _ = strings.Cut(example, "```")
	command := regexp.MustCompile(`^curl -sS (?:-X (\w+) )?"\$POSTHORN_URL(/api/v1/[^"]+)" -H "Authorization: Bearer \$POSTHORN_API_KEY"(?: +-H 'Content-Type: application/json' -d @customers\.json)?$`)
	lines := append(append(typed(t, "migrate.md"), typed(t, "outbox.md")...), typed(t, "authentication.md")...)
	for _, line := range lines {
		m := command.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("not a command that this test can type: %s", line)
			continue
		}
		method, body := m[1], ""
		if strings.Contains(line, "customers.json") {
			method, body = http.MethodPost, example
		} else if method == "" {
			method = http.MethodGet
		}
		eventID := id.New(time.Now(), [10]byte{1})
		w.SQL("INSERT INTO outbox_rejected (id, tenant_id, type, data, code, detail) VALUES ($1, $2, 'a', '1', 'a', 'a')", eventID.String(), acme.uuid.String())
		if a := w.do(method, strings.Replace(m[2], "evt_...", id.Event.Format(eventID), 1), acme.key, body); a.Status/100 != 2 {
			t.Errorf("%s: %d %s", line, a.Status, a.Body)
		}
	}
	if len(lines) != 5 {
		t.Errorf("%d commands", len(lines))
	}
}
