package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/days"
	"posthorn/db/maintenance"
	"posthorn/db/sql"
	domainhistory "posthorn/domain/history"
	"posthorn/domain/id"
	"posthorn/tools/historytest"
	"posthorn/worker/history"
)

// historyDay is a closed day with n events of a tenant, as historytest makes it.
func (h *house) historyDay(tenant, ep id.UUID, ago, n int) time.Time {
	h.t.Helper()
	day, err := historytest.Day(h.t.Context(), h.sql, tenant, ep, ago, n)
	if err != nil {
		h.t.Fatal(err)
	}
	return day
}

// historyRows is every column of every row of a tenant in the tables that history moves.
func (h *house) historyRows(tenant id.UUID) string {
	h.t.Helper()
	var all []string
	for _, table := range domainhistory.Tables {
		var rows string
		h.query("SELECT coalesce(string_agg(x.line, E'\n' ORDER BY x.line), '') FROM (SELECT t::text AS line FROM "+table+" t WHERE tenant_id = $1) x", []any{&rows}, tenant)
		all = append(all, table+"\n"+rows)
	}
	return strings.Join(all, "\n")
}

func (h *house) historyState(tenant id.UUID, day time.Time) (state, failure string) {
	h.t.Helper()
	h.query("SELECT coalesce(max(state), ''), coalesce(max(failure), '') FROM history_days WHERE tenant_id = $1 AND day = $2", []any{&state, &failure}, tenant, day)
	return state, failure
}

func (h *house) ask(tenant id.UUID, day time.Time) {
	h.t.Helper()
	if err := h.db.Tenant(h.t.Context(), tenant, func(q *sql.Queries) error {
		_, err := days.Ask(h.t.Context(), q, tenant, day, db.Author{Kind: "command"})
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) keeper(store history.Store) *history.Keeper {
	return history.New(history.Config{DB: h.db, Store: store, Log: h.log, After: 3, Back: 2})
}

func (h *house) folder() (history.Store, string) {
	h.t.Helper()
	path := h.t.TempDir()
	store, err := history.Open(history.Where{URL: "file://" + path})
	if err != nil {
		h.t.Fatal(err)
	}
	return store, path
}

func (h *house) work(k *history.Keeper) {
	h.t.Helper()
	if err := k.Work(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) reconciled() {
	h.t.Helper()
	if n, err := maintenance.Reconcile(h.t.Context(), h.db, 0, 1_000_000); err != nil || n != 0 {
		h.t.Errorf("the books differ: %d, %v", n, err)
	}
}

// files are the objects of a folder that hold rows.
func files(t *testing.T, path string) (names []string) {
	t.Helper()
	if err := filepath.WalkDir(path, func(name string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.Contains(name, "/metadata/") {
			names = append(names, name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return names
}

func TestADayLeavesAndComesBackColumnByColumn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	store, path := h.folder()
	h.leavesAndComesBack(store)
	if left := files(t, path); len(left) != 3 {
		t.Errorf("the other tenant's objects are to be there: %v", left)
	}
}

// leavesAndComesBack stores a day and restores it, with a real store.
func (h *house) leavesAndComesBack(store history.Store) {
	t := h.t
	tenant, other := h.tenant(), h.tenant()
	ep, otherEp := h.endpoint(tenant, "http://127.0.0.1:1", nil), h.endpoint(other, "http://127.0.0.1:1", nil)
	day := h.historyDay(tenant, ep, 5, 200)
	young := h.historyDay(tenant, ep, 2, 20)
	h.historyDay(other, otherEp, 5, 10)
	before, others := h.historyRows(tenant), h.historyRows(other)
	h.reconciled()
	k := h.keeper(store)
	h.work(k)
	if state, why := h.historyState(tenant, day); state != "stored" {
		t.Fatalf("the day is %s: %s", state, why)
	}
	if state, _ := h.historyState(tenant, young); state != "" {
		t.Errorf("a young day is %s", state)
	}
	if n := h.count("SELECT count(*) FROM deliveries WHERE tenant_id = $1", tenant); n != 20 {
		t.Errorf("%d deliveries are left, want the young day's 20", n)
	}
	h.reconciled()

	var counts []byte
	var c domainhistory.Counts
	h.query("SELECT counts::text::bytea FROM history_days WHERE tenant_id = $1 AND day = $2", []any{&counts}, tenant, day)
	if err := json.Unmarshal(counts, &c); err != nil || c.Events != 200 || c.Deliveries != 200 || c.Attempts != 400 || c.States["failed"] != 40 ||
		c.Types["order.1"] != 67 || c.Endpoints[id.Endpoint.Format(ep)] != 200 {
		t.Errorf("the day holds %s, %v", counts, err)
	}

	h.ask(tenant, day)
	h.work(k)
	if state, why := h.historyState(tenant, day); state != "back" {
		t.Fatalf("the day is %s: %s", state, why)
	}
	if after := h.historyRows(tenant); after != before {
		t.Errorf("rows that came back differ:\n%s\nwant\n%s", after, before)
	}
	if n := h.count("SELECT count(*) FROM history_parts WHERE tenant_id = $1", tenant); n != 0 {
		t.Errorf("%d parts of the day are left", n)
	}
	h.reconciled()

	// It is stored again, with the changes since its restore.
	h.exec("UPDATE deliveries SET archived_at = NULL WHERE tenant_id = $1", tenant)
	before = h.historyRows(tenant)
	h.exec("UPDATE history_days SET back_at = now() - interval '3 days' WHERE tenant_id = $1", tenant)
	k = h.keeper(store)
	h.work(k)
	if state, why := h.historyState(tenant, day); state != "stored" {
		t.Fatalf("the day is %s: %s", state, why)
	}
	h.ask(tenant, day)
	h.work(k)
	if after := h.historyRows(tenant); after != before {
		t.Error("rows that came back a second time differ")
	}
	h.query("SELECT 1 FROM history_days WHERE tenant_id = $1 AND state = 'stored'", []any{new(int)}, other)
	h.ask(other, day)
	h.work(k)
	if h.historyRows(other) != others {
		t.Error("rows of the other tenant differ")
	}
	h.exec("UPDATE history_days SET back_at = now() - interval '3 days' WHERE tenant_id = $1", other)
	h.work(h.keeper(store))
}

var errBroken = errors.New("broken")

// breaking is a store that fails, or whose process dies, at the nth call.
type breaking struct {
	history.Store
	calls atomic.Int64
	at    int64
	wrong func([]byte) []byte // what Get returns
}

func (s *breaking) next() error {
	if s.calls.Add(1) == s.at {
		return errBroken
	}
	return nil
}

func (s *breaking) Put(ctx context.Context, name string, body []byte) error {
	if err := s.next(); err != nil {
		_ = s.Store.Put(ctx, name, body) // it was written, but the response is lost
		return err
	}
	return s.Store.Put(ctx, name, body)
}

func (s *breaking) Get(ctx context.Context, name string, most int64) ([]byte, error) {
	if err := s.next(); err != nil {
		return nil, err
	}
	body, err := s.Store.Get(ctx, name, most)
	if s.wrong != nil {
		body = s.wrong(body)
	}
	return body, err
}

func (s *breaking) Range(ctx context.Context, name string, from, n int64) ([]byte, error) {
	if err := s.next(); err != nil {
		return nil, err
	}
	return s.Store.Range(ctx, name, from, n)
}

func (s *breaking) Delete(ctx context.Context, name string) error {
	if err := s.next(); err != nil {
		return err
	}
	return s.Store.Delete(ctx, name)
}

func (s *breaking) List(ctx context.Context, prefix string) ([]string, error) {
	if err := s.next(); err != nil {
		return nil, err
	}
	return s.Store.List(ctx, prefix)
}

// Whatever call of the store fails, on the way out or back: the next try continues, nothing is lost or doubled, and the
// totals agree all the time.
func TestHistoryGoesOnAfterEveryFailureOfItsStore(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, "http://127.0.0.1:1", nil)
	day := h.historyDay(tenant, ep, 5, 30)
	before := h.historyRows(tenant)
	folder, path := h.folder()
	for at := int64(1); ; at++ {
		store := &breaking{Store: folder, at: at}
		h.work(h.keeper(store))
		failed := store.calls.Load() >= at
		h.reconciled()
		h.exec("UPDATE history_days SET failed_at = now() - interval '1 hour' WHERE failed_at IS NOT NULL")
		h.work(h.keeper(folder))
		if state, why := h.historyState(tenant, day); state != "stored" {
			t.Fatalf("after the failure of call %d the day is %s: %s", at, state, why)
		}
		if n := len(files(t, path)); n != 3 {
			t.Errorf("after the failure of call %d the store has %d objects, want one a table", at, n)
		}
		h.published(folder, tenant, 30)
		h.ask(tenant, day)
		store = &breaking{Store: folder, at: at}
		h.work(h.keeper(store))
		h.reconciled()
		h.exec("UPDATE history_days SET failed_at = now() - interval '1 hour' WHERE failed_at IS NOT NULL")
		h.work(h.keeper(folder))
		if state, why := h.historyState(tenant, day); state != "back" || h.historyRows(tenant) != before {
			t.Fatalf("after the failure of call %d the day is %s, or its rows differ: %s", at, state, why)
		}
		h.published(folder, tenant, 0)
		if n := len(files(t, path)); n != 0 {
			t.Errorf("after the failure of call %d on the way back the store has %d objects", at, n)
		}
		if !failed {
			return
		}
		h.exec("UPDATE history_days SET back_at = now() - interval '3 days'")
	}
}

func TestAnObjectThatChangedIsNeverTrusted(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, "http://127.0.0.1:1", nil)
	day := h.historyDay(tenant, ep, 5, 30)
	before := h.historyRows(tenant)
	folder, _ := h.folder()
	flip := func(body []byte) []byte {
		body[len(body)/2] ^= 1
		return body
	}
	h.work(h.keeper(&breaking{Store: folder, wrong: flip}))
	if state, why := h.historyState(tenant, day); state != "exporting" || !strings.Contains(why, "differs") ||
		h.historyRows(tenant) != before {
		t.Errorf("an object that can't be read back: the day is %s, %q", state, why)
	}
	h.exec("UPDATE history_days SET failed_at = NULL")
	h.work(h.keeper(folder))
	h.ask(tenant, day)
	h.work(h.keeper(&breaking{Store: folder, wrong: flip}))
	if state, why := h.historyState(tenant, day); state != "returning" || !strings.Contains(why, "differs") || h.count("SELECT count(*) FROM events") != 0 {
		t.Errorf("an object that was changed: the day is %s, %q", state, why)
	}
	h.exec("UPDATE history_days SET failed_at = NULL")
	h.work(h.keeper(folder))
	if h.historyRows(tenant) != before {
		t.Error("rows differ")
	}
}

func TestADayStaysWhileSomethingNeedsIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, "http://127.0.0.1:1", nil)
	h.pause(tenant, ep)
	waits := h.historyDay(tenant, ep, 6, 5)
	replayed := h.historyDay(tenant, ep, 5, 5)
	differs := h.historyDay(tenant, ep, 4, 5)
	at := waits.Add(time.Hour)
	h.backdated(tenant, ep, at, at.Add(time.Second), 0, nil)
	h.exec("UPDATE books SET events = events + 1 WHERE day = $1", waits)
	h.exec(`INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id) SELECT $1, $2, id, $3 FROM events WHERE tenant_id = $1 AND created_at BETWEEN $4 AND $4::timestamptz + interval '1 day' LIMIT 1`,
		tenant, db.NewID(), ep, replayed)
	h.exec("UPDATE books SET delivered = delivered + 1, accepted = accepted + 1 WHERE day = $1", differs)
	store, _ := h.folder()
	h.work(h.keeper(store))
	for day, want := range map[time.Time]string{waits: "", replayed: "leaving", differs: "exporting"} {
		if state, why := h.historyState(tenant, day); state != want {
			t.Errorf("%s is %q, want %q: %s", day.Format(time.DateOnly), state, want, why)
		}
	}
	if n := h.count("SELECT count(*) FROM events"); n != 16 {
		t.Errorf("%d events are there, want all 16", n)
	}
	if _, why := h.historyState(tenant, differs); !strings.Contains(why, "books") {
		t.Errorf("where the books differ it says %q", why)
	}
}

// Rows that change after a part was exported are stored in their present state.
func TestAChangeBetweenExportAndLeavingIsExported(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, "http://127.0.0.1:1", nil)
	day := h.historyDay(tenant, ep, 5, 30)
	folder, path := h.folder()
	// When an object is written, everything is read and nothing is deleted.
	changed := false
	h.work(h.keeper(&changing{
		Store: folder,
		name:  ".parquet",
		do: func() {
			if !changed {
				h.exec("UPDATE events SET data = NULL WHERE tenant_id = $1", tenant)
				changed = true
			}
		},
	}))
	if state, why := h.historyState(tenant, day); state != "stored" || !changed {
		t.Fatalf("the day is %s: %s", state, why)
	}
	if n := len(files(t, path)); n != 3 {
		t.Errorf("%d objects are left: what was exported first is to be deleted", n)
	}
	h.ask(tenant, day)
	h.work(h.keeper(folder))
	if n := h.count("SELECT count(*) FROM events WHERE data IS NULL"); n != 30 {
		t.Errorf("%d events came back without their data, want all 30", n)
	}
}

// changing runs a function when an object is written.
type changing struct {
	history.Store
	name string
	do   func()
}

func (s *changing) Put(ctx context.Context, name string, body []byte) error {
	err := s.Store.Put(ctx, name, body)
	if strings.HasSuffix(name, s.name) {
		s.do()
	}
	return err
}

func TestADayOfManyRowsHasSeveralParts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, "http://127.0.0.1:1", nil)
	day := h.historyDay(tenant, ep, 5, 12_000)
	before := h.historyRows(tenant)
	store, path := h.folder()
	k := h.keeper(store)
	began := time.Now()
	h.work(k)
	out := time.Since(began)
	if state, why := h.historyState(tenant, day); state != "stored" || len(files(t, path)) != 3 ||
		h.count("SELECT count(*) FROM history_parts") != 2 {
		t.Fatalf("the day is %s, with %v: %s", state, files(t, path), why)
	}
	h.ask(tenant, day)
	began = time.Now()
	h.work(k)
	t.Logf("12,000 events with their deliveries and 24,000 attempts left in %s and came back in %s", out, time.Since(began))
	if h.historyRows(tenant) != before {
		t.Error("rows that came back differ")
	}
}

func TestHistoryEndsWithRetentionAndWithTheTenant(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant, gone := h.tenant(), h.tenant()
	ep, goneEp := h.endpoint(tenant, "http://127.0.0.1:1", nil), h.endpoint(gone, "http://127.0.0.1:1", nil)
	h.historyDay(tenant, ep, 5, 10)
	h.historyDay(gone, goneEp, 5, 10)
	store, path := h.folder()
	h.work(h.keeper(store))
	if n := len(files(t, path)); n != 3 {
		t.Fatalf("%d objects: two tenants are to share them", n)
	}
	w := New(Config{
		DB:        h.db,
		ListenURL: h.url,
		Log:       h.log,
		Egress:    h.policy,
		Keys:      h.ring,
		Name:      t.Name(),
		History:   h.keeper(store),
	})
	bare := New(Config{DB: h.db, ListenURL: h.url, Log: h.log, Egress: h.policy, Keys: h.ring, Name: t.Name()})
	if err := maintenance.DeleteTenant(t.Context(), h.db, gone, "they left", db.Author{Kind: "command"}); err != nil {
		t.Fatal(err)
	}
	if err := w.maintenance.FailQueued(t.Context(), goneEp); err != nil {
		t.Fatal(err)
	}
	h.exec("UPDATE tenants SET deleted_at = now() - interval '1 hour' WHERE id = $1", gone)
	if err := bare.maintenance.Do(t.Context(), "erase deleted tenants"); err != nil || h.count("SELECT count(*) FROM history_parts") != 2 || h.count("SELECT count(*) FROM tenants WHERE erased_at IS NOT NULL") != 0 {
		t.Errorf("a worker without the store says that the tenant is erased: %v", err)
	}
	if err := w.maintenance.Do(t.Context(), "erase deleted tenants"); err != nil || len(files(t, path)) != 3 || h.count("SELECT count(*) FROM history_days") != 1 {
		t.Errorf("objects of the deleted tenant are left: %v, %v", files(t, path), err)
	}
	if n := h.count("SELECT count(*) FROM tenants WHERE erased_at IS NOT NULL"); n != 1 {
		t.Errorf("%d tenants are erased", n)
	}
	for _, file := range files(t, path) {
		if body, err := os.ReadFile(file); err != nil || bytes.Contains(body, []byte(id.Tenant.Format(gone))) {
			t.Errorf("%s still has rows of the deleted tenant: %v", file, err)
		}
	}
	h.published(store, tenant, 10)
	h.published(store, gone, 0)
	h.exec("UPDATE tenants SET retention_days = 4 WHERE id = $1", tenant)
	h.work(h.keeper(store))
	if left := files(t, path); len(left) != 0 || h.count("SELECT count(*) FROM history_days") != 0 {
		t.Errorf("what the tenant no longer keeps is still stored: %v", left)
	}
}

// An object can't bring rows of another tenant or of another time.
func TestRowsComeBackForTheirTenantAndTimeAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant, other := h.tenant(), h.tenant()
	ep := h.endpoint(tenant, "http://127.0.0.1:1", nil)
	day := h.historyDay(tenant, ep, 5, 3)
	var line string
	h.query("SELECT row_to_json(e)::text FROM events e ORDER BY id LIMIT 1", []any{&line})
	h.exec("DELETE FROM events")
	if err := h.db.Console(t.Context(), func(q *sql.Queries) error {
		for _, wrong := range []struct {
			tenant    id.UUID
			low, high time.Time
		}{
			{other, day, day.AddDate(0, 0, 1)},
			{tenant, day.AddDate(0, 0, 1), day.AddDate(0, 0, 2)},
			{tenant, day.AddDate(0, 0, -1), day},
		} {
			n, err := q.InsertHistory(t.Context(), sql.InsertHistoryParams{
				Name:     "events",
				Lines:    []string{line},
				TenantID: wrong.tenant,
				Low:      wrong.low,
				High:     wrong.high,
			})
			if err != nil || n != 0 {
				return fmt.Errorf("%d rows of another tenant or time arrived: %w", n, err)
			}
		}
		n, err := q.InsertHistory(t.Context(), sql.InsertHistoryParams{
			Name:     "events",
			Lines:    []string{line},
			TenantID: tenant,
			Low:      day,
			High:     day.AddDate(0, 0, 1),
		})
		if err == nil && n != 1 {
			err = fmt.Errorf("%d rows arrived", n)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if err := h.db.Tenant(t.Context(), other, func(q *sql.Queries) error {
		_, err := days.Ask(t.Context(), q, tenant, day, db.Author{Kind: "command"})
		return err
	}); !db.IsNotFound(err) {
		t.Errorf("another tenant asks for the day: %v", err)
	}
}
