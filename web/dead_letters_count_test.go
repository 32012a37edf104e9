package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"posthorn/client"
	"posthorn/db"
	"posthorn/web/cli"
	"posthorn/worker/maintenance"
)

// failures stores what a dead letter looks like and what only looks like one: five that failed and are dead letters,
// and one each that was replayed, that is archived, that a listener got, and that was delivered.
func (y *youngDay) failures() (endpoint string) {
	y.t.Helper()
	ep, listener := db.NewID(), db.NewID()
	y.connect(func(ctx context.Context, c *pgx.Conn) error {
		if _, err := c.Exec(ctx, `WITH e AS (
				INSERT INTO endpoints (tenant_id, id, url, event_types, status, kind, created_at)
				VALUES ($1, $2, 'https://hooks.example.com/', '{*}', 'active', 'http', now()),
					($1, $3, 'listen', '{*}', 'active', 'listen', now()))
			INSERT INTO lanes (endpoint_id, tenant_id, held) VALUES ($2, $1, false), ($3, $1, false)`, y.tenant.String(), ep.String(), listener.String()); err != nil {
			return err
		}
		for _, one := range []struct {
			n                  int
			to                 string
			replayed, archived bool
			delivered          bool
		}{
			{n: 5, to: ep.String()},
			{n: 1, to: ep.String(), replayed: true},
			{n: 1, to: ep.String(), archived: true},
			{n: 1, to: listener.String()},
			{n: 1, to: ep.String(), delivered: true},
		} {
			for range one.n {
				d := db.NewID()
				status := 3
				if one.delivered {
					status = 2
				}
				if _, err := c.Exec(ctx, `WITH v AS (
						INSERT INTO events (tenant_id, created_at, id, type, data, routing_version) VALUES ($1, $2, $3, 'order.paid', '{}', 1))
					INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status, reason, attempts, last_status, archived_at)
					VALUES ($1, $2, $3, $3, $4, 'order.paid', $5::int, CASE WHEN $5::int = 3 THEN 1 ELSE 0 END, 1, 500, CASE WHEN $6::boolean THEN now() END)`,
					y.tenant.String(), d.Time(), d.String(), one.to, status, one.archived); err != nil {
					return err
				}
				if one.delivered {
					continue
				}
				if _, err := c.Exec(ctx, `INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason, replayed, archived, trial)
					VALUES ($1, $2, $3, 'order.paid', 1, $4, $5, $6)`, y.tenant.String(), d.String(), one.to, one.replayed, one.archived, one.to == listener.String()); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return ep.String()
}

// All counts of dead letters agree: the metric, the dry run of a bulk job, the API's list, the command line, the pages
// of the tenant and the operators' console.
func TestEverySurfaceCountsTheSameDeadLetters(t *testing.T) {
	t.Parallel()
	y := newYoungDay(t)
	y.signIn()
	y.failures()
	s := scene{youngDay: y, all: []*situation{{key: y.key}}}
	const want = 5
	counts := map[string]int{}

	var page client.DeliveryPage
	s.json(s.all[0], "/api/v1/deliveries?status=dead_letter", &page)
	counts["the API's list"] = len(page.Data)
	for path, body := range map[string]string{
		"/api/v1/replays":         `{"filter":{"status":"dead_letter"},"dry_run":true}`,
		"/api/v1/deliveries/bulk": `{"action":"archive","filter":{"status":"dead_letter"},"dry_run":true}`,
	} {
		counts["a dry run of "+path] = y.expected(path, body)
	}

	registry := prometheus.NewRegistry()
	if err := maintenance.New(maintenance.Config{
		DB:       y.program.pools[0],
		Registry: registry,
	}).Measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	metrics := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(metrics, httptest.NewRequestWithContext(t.Context(),
		http.MethodGet, "/metrics", nil))
	if _, after, found := strings.Cut(metrics.Body.String(), "\ndead_letters "); found {
		var n int
		if _, err := fmt.Sscan(after, &n); err == nil {
			counts["the metric"] = n
		}
	}

	var listed struct{ Data []json.RawMessage }
	text := y.command("dlq list -n 0 --json")
	if err := json.Unmarshal([]byte(text), &listed.Data); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	counts["posthorn dlq list"] = len(listed.Data)
	if said := y.command("dlq replay-all --dry-run"); !strings.HasPrefix(said, fmt.Sprint(want, " ")) {
		t.Errorf("posthorn dlq replay-all --dry-run says %s", said)
	}

	root := "/t/" + y.last["tenant_id"]
	counts["the page of deliveries"] = strings.Count(s.read(root+"/deliveries?status=dead_letter"), `class="cell-lead"`)
	for path, says := range map[string]string{
		root + "/": fmt.Sprintf("Dead letters %d ", want),
		"/console": fmt.Sprintf("Dead letters %d ", want),
	} {
		if page := s.text(path); !strings.Contains(page, says) {
			t.Errorf("%s does not say %q: %.1500s", path, says, page)
		}
	}
	if len(counts) != 6 {
		t.Errorf("counted on %d surfaces: %v", len(counts), counts)
	}
	for name, n := range counts {
		if n != want {
			t.Errorf("%s: %d dead letters, want %d", name, n, want)
		}
	}
}

// expected is how many deliveries a dry run says that a job would handle.
func (y *youngDay) expected(path, body string) int {
	y.t.Helper()
	r, err := http.NewRequestWithContext(y.t.Context(), http.MethodPost, y.program.URL()+path, strings.NewReader(body))
	if err != nil {
		y.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+y.key)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		y.t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct{ Expected int }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != http.StatusOK {
		y.t.Errorf("%s: %d, %v", path, res.StatusCode, err)
	}
	return answer.Expected
}

// command runs the command line against the server and returns what it printed.
func (y *youngDay) command(line string) string {
	y.t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{
		program: "posthorn",
		args:    strings.Fields(line),
		stdin:   strings.NewReader(""),
		stdout:  &stdout,
		stderr:  &stderr,
		environ: []string{"POSTHORN_URL=" + y.program.URL(), "POSTHORN_API_KEY=" + y.key, "HOME=" + y.t.TempDir()},
	}
	if code := a.run(y.t.Context()); code != cli.ExitOK {
		y.t.Errorf("posthorn %s: exit code %d\n%s", line, code, stderr.String())
	}
	return stdout.String()
}
