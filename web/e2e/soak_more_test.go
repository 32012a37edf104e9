//go:build soak && unix

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/domain/id"
	"posthorn/tools/historytest"
	"posthorn/tools/schematest"
)

// soaking is how long a soak lasts.
func soaking(t *testing.T) time.Duration {
	t.Helper()
	lasting, err := time.ParseDuration(os.Getenv("POSTHORN_SOAK"))
	if err != nil {
		t.Fatalf("POSTHORN_SOAK: %v", err)
	}
	return lasting
}

// TestSoakOfHistory kills the worker that moves old days into storage, and brings some of them back, for as long as a
// soak lasts. In the end every delivery is listed once, in storage.
func TestSoakOfHistory(t *testing.T) {
	t.Parallel()
	const rows = 250
	lasting := soaking(t)
	database, admin := schematest.CloneLogical(t)
	w := newWorldAt(t, []string{
		"POSTHORN_DATABASE_URL=" + database, "POSTHORN_MASTER_KEY=" + masterKey,
		"POSTHORN_HISTORY_URL=file://" + folder(t), "POSTHORN_HISTORY_AFTER_DAYS=2", "POSTHORN_HISTORY_BACK_DAYS=1",
	}, func(*arrival) int { return http.StatusOK })
	w.serveAt(w.launch("web", "web").ready())
	worker := w.launch("worker", "worker").ready()
	w.open(database)
	w.makeTenant()
	tenant, err := id.Tenant.Parse(w.tenant)
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := id.Endpoint.Parse(w.endpoint("/past", nil))
	if err != nil {
		t.Fatal(err)
	}
	sql, err := pgx.Connect(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sql.Close(context.Background()) }()
	exec := func(text string) {
		if _, err := sql.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	type day struct {
		Day, State                   string
		Events, Deliveries, Attempts int
	}
	var list struct{ Data []day }
	stored := func() (n int) {
		w.manage(http.MethodGet, "/history", nil, &list)
		for _, d := range list.Data {
			if d.State == "stored" {
				n++
			}
		}
		return n
	}
	made, kills, returned := 0, 0, 0
	for started, round := time.Now(), 0; time.Since(started) < lasting; round++ {
		for range min(3, 80-made) { // older days are past their retention
			if _, err := historytest.Day(t.Context(), sql, tenant, endpoint, 4+made, rows); err != nil {
				t.Fatal(err)
			}
			made++
		}
		for range 3 { // the first look of a worker is at its start
			worker.kill()
			exec("UPDATE posthorn.chores SET done_at = now() WHERE done_at > now()") // the lease of who was killed: minutes
			worker = w.launch("worker", "worker").ready()
			time.Sleep(rand.N(1500 * time.Millisecond)) // the fault hits any step
			kills++
		}
		worker.kill()
		exec("UPDATE posthorn.chores SET done_at = now() WHERE done_at > now()")
		worker = w.launch("worker", "worker").ready()
		eventually(t, 5*time.Minute, "all days are in storage", func() bool { return stored() == made })
		if round%2 == 1 {
			w.manage(http.MethodPost, "/history/"+list.Data[rand.IntN(made)].Day+"/restore", nil, nil)
			worker.kill()
			exec("UPDATE posthorn.chores SET done_at = now() WHERE done_at > now()")
			worker = w.launch("worker", "worker").ready()
			eventually(t, 5*time.Minute, "a day is back", func() bool { return w.ask("SELECT count(*) FROM history_days WHERE state = 'back'") == 1 })
			exec("UPDATE posthorn.history_days SET back_at = now() - interval '3 days' WHERE state = 'back'")
			returned++
		}
	}
	worker.kill()
	exec("UPDATE posthorn.chores SET done_at = now() WHERE done_at > now()")
	w.launch("worker", "worker").ready()
	eventually(t, 5*time.Minute, "all days are in storage at last", func() bool { return stored() == made })
	for _, d := range list.Data {
		if d.Events != rows || d.Deliveries != rows || d.Attempts != 2*rows {
			t.Errorf("%+v", d)
		}
		seen := map[string]bool{}
		for _, path := range []string{"/deliveries?limit=100&stored_day=" + d.Day, "/deliveries?limit=100&archived=true&stored_day=" + d.Day} {
			for next := path; next != ""; {
				var page struct {
					Data []struct{ ID string }
					Next string `json:"next_cursor"`
				}
				w.manage(http.MethodGet, next, nil, &page)
				for _, row := range page.Data {
					if seen[row.ID] {
						t.Errorf("%s: %s is listed twice", d.Day, row.ID)
					}
					seen[row.ID] = true
				}
				if next = ""; page.Next != "" {
					next = path + "&cursor=" + url.QueryEscape(page.Next)
				}
			}
		}
		if len(seen) != rows {
			t.Errorf("%s: %d of %d deliveries are listed", d.Day, len(seen), rows)
		}
	}
	if n := w.ask("SELECT count(*) FROM deliveries"); n != 0 {
		t.Errorf("%d deliveries of stored days are left", n)
	}
	t.Logf("%d days with %d deliveries left for storage through %d kills, %d came back and left again", made, made*rows, kills, returned)
}

// TestSoakOfACluster lets the faults of a managed cluster happen to it, one after the other, for as long as a soak
// lasts.
func TestSoakOfACluster(t *testing.T) {
	t.Parallel()
	lasting, m := soaking(t), newManaged(t)
	end := m.emitting()
	defer end()
	all, happened := m.faults(), map[string]int{}
	for started := time.Now(); time.Since(started) < lasting; {
		f := all[rand.IntN(len(all))]
		m.fault(t, f.name, f.do)
		happened[f.name]++
		time.Sleep(time.Duration(5+rand.IntN(20)) * time.Second) // between faults
	}
	end()
	m.settled(len(m.acknowledgements()), 5*time.Minute)
	m.check(t)
	t.Logf("faults: %v", happened)
}

// TestSoakOfMoves moves a tenant under load from one home to another, with kills of the command or of a home, again and
// again for as long as a soak lasts.
func TestSoakOfMoves(t *testing.T) {
	t.Parallel()
	lasting, moves := soaking(t), 0
	for started := time.Now(); time.Since(started) < lasting && !t.Failed(); moves++ {
		victim := moves%3 - 1
		t.Run(fmt.Sprintf("move %d", moves), func(t *testing.T) { moveThroughKills(newTwoHomes(t), victim) })
	}
	t.Logf("%d moves", moves)
}
