//go:build (e2e || soak) && unix

package e2e

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/web/movetest"
)

// importApps is how many applications are imported: POSTHORN_IMPORT_APPS, or 2,000 with 5,000 endpoints in a soak.
func importApps(soak bool) int {
	if n, err := strconv.Atoi(os.Getenv("POSTHORN_IMPORT_APPS")); err == nil && n > 0 {
		return n
	}
	if soak {
		return 2000
	}
	return 200
}

// TestAnImporterThatIsKilledHalfWayEndsAsASingleRun copies applications and endpoints from a Svix server that answers
// in pages and is busy at times. One importer runs undisturbed; another is killed with SIGKILL half way and run again.
// Both databases end equal, and a further run changes nothing.
func TestAnImporterThatIsKilledHalfWayEndsAsASingleRun(t *testing.T) {
	t.Parallel()
	apps := importApps(os.Getenv("POSTHORN_SOAK") != "")
	var states [2][]string
	for i := range states {
		w := newWorld(t, nil)
		w.serveAt(w.launch("serve", "serve").ready())
		var made struct {
			Key string `json:"api_key"`
		}
		command(t, w.environ, w.at, &made, "key", "create", "--platform", "--scopes", "all", "--json")
		source := movetest.Svix(apps)
		server := httptest.NewServer(source)
		t.Cleanup(server.Close)
		run := func() (*exec.Cmd, func() []byte) {
			cmd := exec.Command(binary, "import", "svix", "--json", "--verified", "--token", movetest.Token, "--url", server.URL)
			cmd.Env = []string{"POSTHORN_URL=" + w.web(), "POSTHORN_API_KEY=" + made.Key, "HOME=" + t.TempDir()}
			return cmd, func() []byte {
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("the import: %v\n%.2000s", err, out)
				}
				return out
			}
		}
		if i == 1 {
			cmd, _ := run()
			killed := make(chan struct{})
			half := apps * 3 // of the about six requests for each application
			source.Notify(func(asked int) {
				if asked == half {
					_ = cmd.Process.Kill()
					close(killed)
				}
			})
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil {
				t.Fatal("the importer ended before it was killed")
			}
			<-killed
			source.Notify(nil)
		}
		began := time.Now()
		_, output := run()
		output()
		t.Logf("%d applications with %d endpoints in %.1f s", apps, source.Tenants.Endpoints(), time.Since(began).Seconds())
		var again []struct {
			Created, Updated int
			Problems         []string
		}
		_, output = run()
		if err := json.Unmarshal(output(), &again); err != nil || len(again) != apps {
			t.Fatalf("%d applications, %v", len(again), err)
		}
		for _, a := range again {
			if a.Created+a.Updated != 0 || len(a.Problems) != 0 {
				t.Fatalf("a further run changes something: %+v", a)
			}
		}
		if source.Throttled() == 0 {
			t.Error("the server was never busy")
		}
		states[i] = imported(t, w)
	}
	if want := movetest.Tenants(apps).Endpoints(); len(states[0]) != want {
		t.Errorf("%d endpoints, want %d", len(states[0]), want)
	}
	if !slices.Equal(states[0], states[1]) {
		t.Errorf("an importer that was killed ends differently")
	}
}

// imported is everything of the imported endpoints that a receiver or a person would notice.
func imported(t *testing.T, w *world) (out []string) {
	t.Helper()
	rows, err := w.sql.Query(t.Context(), `SELECT concat_ws(' ', t.external_id, t.name, e.external_id, e.url, e.status, e.event_types::text, e.rate_limit, e.wire, e.metadata,
		e.retry_delays::text, (SELECT string_agg(s.hint, ',') FROM posthorn.endpoint_secrets s WHERE s.endpoint_id = e.id), (SELECT count(*) FROM posthorn.event_types y WHERE y.tenant_id = t.id))
		FROM posthorn.endpoints e JOIN posthorn.tenants t ON t.id = e.tenant_id WHERE t.external_id IS NOT NULL AND e.deleted_at IS NULL ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	if out, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		t.Fatal(err)
	}
	return out
}
