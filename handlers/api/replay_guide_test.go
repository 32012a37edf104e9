package api_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestTheRecoveryGuideCanBeTyped runs every command of docs/replay.md, in its order.
func TestTheRecoveryGuideCanBeTyped(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/replay.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	tn := w.tenant("a")
	began := time.Now().Add(-time.Minute)
	ep := w.active(tn, nil)
	w.dead(tn, 3, nil)
	event := w.emit(tn, nil)
	w.settle(ids(w.do("GET", "/api/v1/events/"+event+"/deliveries", tn.key, nil))[0], 3, 1)
	job := ""
	commands := 0
	for _, block := range regexp.MustCompile("(?s)\n```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for _, line := range strings.Split(strings.ReplaceAll(block[1], "\\\n", ""), "\n") {
			line = strings.NewReplacer("'$SINCE'", since(began), "'$ENDPOINT'", ep, "$ENDPOINT", ep, "$EVENT", event, "$JOB", job).Replace(line)
			m := regexp.MustCompile(`^curl -sS "\$POSTHORN_URL(/api/v1/[^"]+)" -H "Authorization: Bearer \$POSTHORN_API_KEY"(?: +--json '(.*)')?( -X POST)?$`).FindStringSubmatch(line)
			if m == nil {
				if strings.TrimSpace(line) != "" {
					t.Errorf("not a command that this test can type: %s", line)
				}
				continue
			}
			commands++
			method := "GET"
			if m[2] != "" || m[3] != "" {
				method = "POST"
			}
			a := w.do(method, m[1], tn.key, m[2])
			if a.Status/100 != 2 {
				t.Errorf("%s: %d %s", line, a.Status, a.Body)
			}
			if strings.Contains(m[1], "/recover") && a.Status == 202 {
				job = a.text("id")
			}
		}
	}
	if commands < 12 {
		t.Errorf("%d commands: were they found?", commands)
	}
	w.work()
	w.balanced()
}
