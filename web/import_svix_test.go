package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// svixServer answers as Svix does: in pages, with a limit on requests, and with a secret and headers for each endpoint.
type svixServer struct {
	apps      int
	mu        sync.Mutex
	asked     int
	crashAt   int // the request that ends the import; 0: none
	crash     func()
	disabled  map[string]bool // endpoints that were disabled through the API
	throttled int
}

// perApp is how many endpoints an application has: 2.5 on average.
func perApp(i int) int { return 2 + i%2 }

func svixSecret(app, endpoint int) string {
	return fmt.Sprintf("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2%03d%03dLaA=", app%1000, endpoint)
}

func (s *svixServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked++
	asked := s.asked
	if s.crashAt == asked {
		s.crash()
	}
	s.mu.Unlock()
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	if r.Header.Get("Authorization") != "Bearer svix-token" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if asked%97 == 0 {
		s.mu.Lock()
		s.throttled++
		s.mu.Unlock()
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	if asked%201 == 0 {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
	number := func(text string) int {
		n, _ := strconv.Atoi(text[strings.LastIndex(text, "_")+1:])
		return n
	}
	page := func(total int, one func(i int) any) {
		from, _ := strconv.Atoi(r.URL.Query().Get("iterator"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		until := min(from+min(max(limit, 1), 100), total) // fewer than were asked for
		data := []any{}
		for i := from; i < until; i++ {
			data = append(data, one(i))
		}
		answer(map[string]any{"data": data, "iterator": strconv.Itoa(until), "done": until == total})
	}
	switch {
	case parts[0] == "event-type":
		page(3, func(i int) any { return map[string]any{"name": fmt.Sprintf("type.n%d", i), "description": "A type"} })
	case len(parts) == 1:
		page(s.apps, func(i int) any {
			return map[string]any{"id": fmt.Sprintf("app_%d", i), "uid": fmt.Sprintf("customer-%d", i), "name": fmt.Sprintf("Customer %d", i)}
		})
	case len(parts) == 3:
		app := number(parts[1])
		page(perApp(app), func(i int) any {
			id := fmt.Sprintf("ep_%d_%d", app, i)
			return map[string]any{
				"id": id, "url": fmt.Sprintf("https://c%d.example.com/hooks/%d", app, i), "description": "", "metadata": map[string]string{"n": strconv.Itoa(i)},
				"filterTypes": []string{"type.n1"}, "channels": nil, "rateLimit": 10 + i, "disabled": s.isDisabled(id) || i == 2,
			}
		})
	case parts[len(parts)-1] == "secret":
		answer(map[string]string{"key": svixSecret(number(parts[1]), number(parts[3]))})
	case parts[len(parts)-1] == "headers":
		answer(map[string]any{"headers": map[string]string{"X-Team": parts[3]}, "sensitive": []string{}})
	case r.Method == http.MethodPatch && len(parts) == 4:
		s.mu.Lock()
		s.disabled[parts[3]] = true
		s.mu.Unlock()
		answer(map[string]any{})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *svixServer) isDisabled(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disabled[id]
}

// state is everything of the imported tenants that a receiver or a person would notice.
func (d *desk) state(t *testing.T) []string {
	t.Helper()
	conn := d.pool(t)
	if _, err := conn.Exec(t.Context(), "SET ROLE posthorn_console"); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), `SELECT t.external_id || ' ' || t.name || ' ' || e.external_id || ' ' || e.url || ' ' || e.status || ' ' ||
		e.event_types::text || ' ' || e.rate_limit || ' ' || e.wire::text || ' ' || e.metadata::text || ' ' || (SELECT count(*) FROM posthorn.endpoint_secrets s WHERE s.endpoint_id = e.id) ||
		' ' || (SELECT string_agg(s.hint, ',') FROM posthorn.endpoint_secrets s WHERE s.endpoint_id = e.id) || ' ' ||
		(SELECT count(*) FROM posthorn.event_types y WHERE y.tenant_id = t.id)
		FROM posthorn.endpoints e JOIN posthorn.tenants t ON t.id = e.tenant_id WHERE t.external_id IS NOT NULL AND e.deleted_at IS NULL`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// TestAnImportFromSvixThatCrashesHalfWayEndsAsASingleRun copies many applications from a server that is busy at times.
// With POSTHORN_IMPORT_APPS the size is another; 2000 are 5,000 endpoints.
func TestAnImportFromSvixThatCrashesHalfWayEndsAsASingleRun(t *testing.T) {
	t.Parallel()
	apps := 40
	if text := os.Getenv("POSTHORN_IMPORT_APPS"); text != "" {
		apps, _ = strconv.Atoi(text)
	}
	var states [2][]string
	for i := range states {
		d := newPlatformDesk(t)
		source := &svixServer{apps: apps, disabled: map[string]bool{}}
		server := httptest.NewServer(source)
		t.Cleanup(server.Close)
		line := "import svix --json --verified --token svix-token --url " + server.URL
		if i == 1 {
			ctx, cancel := context.WithCancel(t.Context())
			source.crashAt, source.crash = apps*3, cancel
			if r := d.runIn(ctx, strings.Fields(line)...); r.code == 0 {
				t.Fatalf("the import did not break off: %s", r.stdout)
			}
		}
		d.ok(nil, line)
		var again []struct {
			App                         string
			Endpoints, Created, Updated int
			Problems                    []string
		}
		d.ok(&again, line)
		if len(again) != apps {
			t.Fatalf("%d applications, want %d", len(again), apps)
		}
		for _, a := range again {
			if a.Created+a.Updated != 0 || len(a.Problems) != 0 {
				t.Fatalf("a third run changes something: %+v", a)
			}
		}
		if source.throttled == 0 {
			t.Error("the server was never busy")
		}
		states[i] = d.state(t)
	}
	if want := apps * 5 / 2; len(states[0]) != want {
		t.Errorf("%d endpoints, want %d", len(states[0]), want)
	}
	if !slices.Equal(states[0], states[1]) {
		t.Errorf("a run that broke off ends differently:\n%q\n%q", states[0][:1], states[1][:1])
	}
	if len(states[0]) == 0 {
		t.FailNow()
	}
	if line := states[0][0]; !strings.Contains(line, "svix-") || !strings.Contains(line, " active ") && !strings.Contains(line, " paused ") {
		t.Errorf("an endpoint: %s", line)
	}
}

func TestACutOverHoldsPosthornUntilItsTimeAndSvixAfterIt(t *testing.T) {
	t.Parallel()
	d := newPlatformDesk(t)
	source := &svixServer{apps: 1, disabled: map[string]bool{}}
	server := httptest.NewServer(source)
	t.Cleanup(server.Close)
	line := "import svix --json --verified --token svix-token --url " + server.URL + " --cut-over "
	d.ok(nil, line+"2999-01-01T00:00:00Z")
	for _, row := range d.state(t) {
		if !strings.Contains(row, " paused ") {
			t.Errorf("before the cut-over: %s", row)
		}
	}
	if len(source.disabled) != 0 {
		t.Errorf("disabled in Svix before the cut-over: %v", source.disabled)
	}
	d.ok(nil, line+"2020-01-01T00:00:00Z")
	for _, row := range d.state(t) {
		if !strings.Contains(row, " active ") {
			t.Errorf("after the cut-over: %s", row)
		}
	}
	if len(source.disabled) != 2 {
		t.Errorf("disabled in Svix after the cut-over: %v", source.disabled)
	}
	d.ok(nil, line+"2020-01-01T00:00:00Z")
	d.ok(nil, "import svix --dry-run --token svix-token --url "+server.URL)
}

// newPlatformDesk is a desk whose key acts for any tenant.
func newPlatformDesk(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	var k made
	succeed(t, d.server, &k, "key", "create", "--platform", "--scopes", "all", "--json")
	d.environ = []string{"POSTHORN_URL=" + d.url, "POSTHORN_API_KEY=" + k.APIKey, "HOME=" + t.TempDir()}
	return d
}

// pool is a connection to the desk's database.
func (d *desk) pool(t *testing.T) *pgx.Conn {
	t.Helper()
	var url string
	for _, variable := range d.server {
		if text, ok := strings.CutPrefix(variable, "POSTHORN_DATABASE_URL="); ok {
			url = text
		}
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}
