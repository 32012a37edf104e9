package main

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"posthorn/web/movetest"
)

// state is everything of the imported tenants that a receiver or a person would notice.
func (d *desk) state(t *testing.T) []string {
	t.Helper()
	conn := d.pool(t)
	if _, err := conn.Exec(t.Context(), "SET ROLE posthorn_console"); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), `SELECT concat_ws(' ', t.external_id, t.name, e.external_id, e.url, e.status, e.event_types::text, e.rate_limit, e.wire, e.metadata,
		e.filter, e.retry_delays::text, (SELECT string_agg(s.hint, ',') FROM posthorn.endpoint_secrets s WHERE s.endpoint_id = e.id),
		(SELECT count(*) FROM posthorn.event_types y WHERE y.tenant_id = t.id))
		FROM posthorn.endpoints e JOIN posthorn.tenants t ON t.id = e.tenant_id WHERE t.external_id IS NOT NULL AND e.deleted_at IS NULL`)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// mover is another sender's server, with the command that imports from it.
type mover struct {
	*movetest.Server
	line   string
	copied int // endpoints of the two tenants 0 and 1 that have an equivalent
}

func movers(t *testing.T, tenants int) map[string]mover {
	t.Helper()
	out := map[string]mover{
		"svix":    {movetest.Svix(tenants), "import svix --url URL", 5},
		"outpost": {movetest.Outpost(tenants), "import outpost --url URL/api/v1", 4},
		"convoy":  {movetest.Convoy(tenants), "import convoy --project proj_1 --url URL", 4},
	}
	for name, m := range out {
		server := httptest.NewServer(m.Server)
		t.Cleanup(server.Close)
		m.line = strings.Replace(m.line, "URL", server.URL, 1) + " --json --token " + movetest.Token
		out[name] = m
	}
	return out
}

type moveReport []struct {
	Tenant                                 string
	Endpoints, Created, Updated, Unchanged int
	CutOver                                bool `json:"cut_over"`
	Problems                               []string
	Entries                                []struct {
		Kind, Name, Action, URL, State string
		Receives, Notes                []string
	}
}

// TestAnImportThatBreaksOffEndsAsASingleRun copies tenants from servers that are busy at times. web/e2e does so at full
// size, with an importer that is killed.
func TestAnImportThatBreaksOffEndsAsASingleRun(t *testing.T) {
	t.Parallel()
	const tenants = 12
	for _, name := range []string{"svix", "outpost", "convoy"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var states [2][]string
			for i := range states {
				d := newPlatformDesk(t)
				m := movers(t, tenants)[name]
				if i == 1 {
					ctx, cancel := context.WithCancel(t.Context())
					m.Notify(func(asked int) {
						if asked == 6 {
							cancel()
						}
					})
					if r := d.runIn(ctx, strings.Fields(m.line+" --verified")...); r.code == 0 {
						t.Fatalf("the import did not break off: %s", r.stdout)
					}
					m.Notify(nil)
				}
				d.run(m.line + " --verified")
				var again moveReport
				d.report(t, &again, m.line+" --verified")
				if len(again) != tenants {
					t.Fatalf("%d tenants, want %d", len(again), tenants)
				}
				for _, a := range again {
					if a.Created+a.Updated != 0 || a.Unchanged == 0 {
						t.Fatalf("a further run changes something: %+v", a)
					}
				}
				states[i] = d.state(t)
			}
			if want := tenants / 2 * movers(t, 2)[name].copied; len(states[0]) != want {
				t.Errorf("%d endpoints, want %d", len(states[0]), want)
			}
			if !slices.Equal(states[0], states[1]) {
				t.Errorf("a run that broke off ends differently:\n%q\n%q", states[0][:1], states[1][:1])
			}
		})
	}
}

// report runs a command and returns its report, also if a part failed.
func (d *desk) report(t *testing.T, into *moveReport, line string) {
	t.Helper()
	r := d.run(line)
	if r.code != 0 && r.code != 1 {
		t.Fatalf("%s: exit code %d\n%s", line, r.code, r.stderr)
	}
	*into = nil
	if err := json.Unmarshal([]byte(r.stdout), into); err != nil {
		t.Fatalf("%s printed %s: %v", line, r.stdout, err)
	}
}

// TestADryRunSaysOfEachEndpointWhatWouldBeMade holds that the dry run tries every entry, in tenants that exist and in
// those that don't, and leaves nothing behind.
func TestADryRunSaysOfEachEndpointWhatWouldBeMade(t *testing.T) {
	t.Parallel()
	d := newPlatformDesk(t)
	for name, m := range movers(t, 2) {
		var dry moveReport
		d.report(t, &dry, m.line+" --verified --dry-run")
		made := 0
		for _, a := range dry {
			for _, e := range a.Entries {
				if e.Kind != "endpoint" || e.Action == "left_out" {
					continue
				}
				made++
				if e.Action != "created" || !strings.Contains(e.URL, "https://c") || len(e.Receives) == 0 || e.State == "" {
					t.Errorf("%s: %+v", name, e)
				}
			}
		}
		if made != m.copied {
			t.Errorf("%s: %d endpoints would be made, want %d: %+v", name, made, m.copied, dry)
		}
		if left := d.state(t); len(left) != 0 {
			t.Fatalf("%s: a dry run made %q", name, left)
		}
		if r := d.run(strings.Replace(m.line, " --json", "", 1) + " --verified --dry-run"); !strings.Contains(r.stdout, "WOULD BE") ||
			!strings.Contains(r.stdout, "c0.example.com/hooks/0") || !strings.Contains(r.stderr, "Nothing was done.") {
			t.Errorf("%s: for people: %s%s", name, r.stdout, r.stderr)
		}
	}
	m := movers(t, 1)["svix"]
	d.ok(nil, m.line+" --verified")
	var after moveReport
	d.report(t, &after, m.line+" --verified --dry-run")
	for _, e := range after[0].Entries {
		if e.Kind == "endpoint" && e.Action != "unchanged" {
			t.Errorf("of what is there already: %+v", e)
		}
	}
}

// TestSecretsThatAreNotShownAreAskedForByName imports from servers that keep secrets to themselves.
func TestSecretsThatAreNotShownAreAskedForByName(t *testing.T) {
	t.Parallel()
	d := newPlatformDesk(t)
	for name, m := range movers(t, 1) {
		m.Hidden = true
		first := map[string]string{"svix": "ep_0_0", "outpost": "des_0_0", "convoy": "end_0_0"}[name]
		var got moveReport
		d.report(t, &got, m.line+" --verified")
		if got[0].Created != 0 || !strings.Contains(strings.Join(got[0].Problems, "\n"), `Add "`+first+`": "<the secret>" to the file of --secrets`) {
			t.Errorf("%s: without the secrets: %+v", name, got)
		}
		file := filepath.Join(t.TempDir(), "secrets.json")
		if err := os.WriteFile(file, []byte(`{"`+first+`": "`+movetest.Secret(first)+`"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		d.report(t, &got, m.line+" --verified --secrets "+file)
		if got[0].Created != 1 {
			t.Errorf("%s: with a secret: %+v", name, got)
		}
	}
	if r := d.run("import svix --url http://127.0.0.1:1 --token x --secrets /nonexistent"); r.code != 2 {
		t.Errorf("an unreadable file: %+v", r)
	}
}

func TestACutOverHoldsPosthornUntilItsTimeAndTheOtherSenderAfterIt(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"svix", "outpost", "convoy"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newPlatformDesk(t)
			m := movers(t, 1)[name]
			endpoints := map[string][]string{"svix": {"ep_0_0", "ep_0_1"}, "outpost": {"des_0_0", "des_0_1"}, "convoy": {"end_0_0", "end_0_1"}}[name]
			check := func(when, status string, disabled bool) {
				t.Helper()
				rows := d.state(t)
				for _, row := range rows {
					if !strings.Contains(row, " "+status+" ") {
						t.Errorf("%s: %s", when, row)
					}
				}
				for _, e := range endpoints {
					if m.Disabled(e) != disabled {
						t.Errorf("%s: %s is disabled there: %v", when, e, m.Disabled(e))
					}
				}
				if len(rows) != 2 {
					t.Fatalf("%s: %q", when, rows)
				}
			}
			if r := d.run(m.line + " --cut-over 2999-01-01T00:00:00Z"); r.code != 2 || !strings.Contains(r.stderr, "--verified") {
				t.Errorf("without --verified: %+v", r)
			}
			future, past := m.line+" --verified --cut-over 2999-01-01T00:00:00Z", m.line+" --verified --cut-over 2020-01-01T00:00:00Z"
			d.ok(nil, future)
			check("before the cut-over", "paused", false)
			var dry moveReport
			d.ok(&dry, past+" --dry-run")
			check("after a dry run", "paused", false)
			d.ok(nil, past)
			check("after the cut-over", "active", true)
			d.ok(nil, past)
			d.ok(nil, m.line+" --verified")
			check("after another import", "active", true)
			d.ok(nil, m.line+" --back")
			check("taken back", "paused", false)
			d.ok(nil, past)
			check("cut over again", "active", true)
		})
	}
}

// TestACutOverThatBreaksOffIsCompletedByTheNext stops the importer after each of its requests to the other server.
func TestACutOverThatBreaksOffIsCompletedByTheNext(t *testing.T) {
	t.Parallel()
	d := newPlatformDesk(t)
	m := movers(t, 1)["svix"]
	m.Steady = true
	d.ok(nil, m.line+" --verified --cut-over 2999-01-01T00:00:00Z")
	line := m.line + " --verified --cut-over 2020-01-01T00:00:00Z"
	start := m.Asked()
	d.ok(nil, line+" --dry-run")
	for n := m.Asked() - start; n > 0; n-- { // a request less each time; those of the cut-over come last
		ctx, cancel := context.WithCancel(t.Context())
		started := m.Asked()
		m.Notify(func(asked int) {
			if asked > started+n {
				cancel()
			}
		})
		_ = d.runIn(ctx, strings.Fields(line)...)
		cancel()
	}
	m.Notify(nil)
	d.ok(nil, line)
	for _, row := range d.state(t) {
		if !strings.Contains(row, " active ") || !m.Disabled("ep_0_0") || !m.Disabled("ep_0_1") {
			t.Errorf("after the cut-over: %s", row)
		}
	}
}

// newPlatformDesk is a desk with a platform key.
func newPlatformDesk(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	d.t = t
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
