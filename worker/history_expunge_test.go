package worker

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"posthorn/db"
	"posthorn/db/days"
	"posthorn/db/deliveries"
	"posthorn/db/maintenance"
	"posthorn/db/sql"
	domainhistory "posthorn/domain/history"
	"posthorn/domain/id"
	"posthorn/worker/history"
)

// secrets gives the first n events of a tenant's day data, and their attempts responses, that occur nowhere else, and
// returns the events and these texts.
func (h *house) secrets(tenant id.UUID, day time.Time, n int) (events []id.UUID, texts []string) {
	h.t.Helper()
	for i := range n {
		var event id.UUID
		h.query("SELECT id FROM events WHERE tenant_id = $1 AND created_at >= $2 AND data IS NOT NULL ORDER BY id OFFSET $3 LIMIT 1", []any{&event}, tenant, day, i)
		text := fmt.Sprintf("canary-%x-of-a-person", event[8:])
		h.exec(`UPDATE events SET data = convert_to('{"name":"' || $3::text || '"}', 'UTF8') WHERE tenant_id = $1 AND id = $2`, tenant, event, text)
		h.exec(`UPDATE attempts SET response_excerpt = convert_to('hello ' || $3::text, 'UTF8'), response_headers = 'X-Name: ' || $3::text
			WHERE tenant_id = $1 AND delivery_id IN (SELECT d.id FROM deliveries d WHERE d.event_id = $2)`, tenant, event, text)
		events, texts = append(events, event), append(texts, text)
	}
	return events, texts
}

// objectsWith are the objects of a folder that have a text: in their bytes, or in what they have compressed.
func objectsWith(t testing.TB, path, text string) (names []string) {
	t.Helper()
	if err := filepath.WalkDir(path, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if bytes.Contains(body, []byte(text)) || bytes.Contains(unpacked(t, name, body), []byte(text)) {
			names = append(names, name)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return names
}

// unpacked is all that an object has compressed.
func unpacked(t testing.TB, name string, body []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	switch {
	case strings.HasSuffix(name, ".gz"):
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			_, err = io.Copy(&out, r)
		}
		if err != nil {
			t.Fatal(name, err)
		}
	case strings.HasSuffix(name, ".parquet"):
		f, err := parquet.OpenFile(bytes.NewReader(body), int64(len(body)))
		if err != nil {
			t.Fatal(name, err)
		}
		rows := make([]parquet.Row, 100)
		for _, group := range f.RowGroups() {
			r := group.Rows()
			for {
				n, err := r.ReadRows(rows)
				for _, row := range rows[:n] {
					for _, value := range row {
						if value.Kind() == parquet.ByteArray {
							out.Write(value.ByteArray())
							out.WriteByte('\n')
						}
					}
				}
				if err != nil {
					break
				}
			}
			_ = r.Close()
		}
	}
	return out.Bytes()
}

// expunge destroys the data of an event of a day in storage.
func (h *house) expunge(store history.Store, tenant, event id.UUID) (done deliveries.Expunged) {
	h.t.Helper()
	ctx := h.t.Context()
	lent, err := days.OfEvent(ctx, h.db, history.NewSource(h.db, store), tenant, event)
	if err != nil || lent == nil {
		h.t.Fatalf("the event is not in storage: %v", err)
	}
	if err := lent.Destroy(ctx, h.db, func(q *sql.Queries) error {
		done, err = deliveries.ExpungeEvent(ctx, q, tenant, event, "asked for", db.Author{Kind: "command"})
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
	return done
}

// storedTexts is what a read in place shows of an event: its data and the responses to it.
func (h *house) storedTexts(store history.Store, tenant, event id.UUID) (texts string) {
	h.t.Helper()
	ctx := h.t.Context()
	lent, err := days.OfEvent(ctx, h.db, history.NewSource(h.db, store), tenant, event)
	if err != nil || lent == nil {
		h.t.Fatalf("the event is not in storage: %v", err)
	}
	if err := lent.Read(ctx, h.db, func(q *sql.Queries) error {
		found, err := q.EventsData(ctx, sql.EventsDataParams{TenantID: tenant, Ids: []id.UUID{event}, Created: []time.Time{event.Time()}, First: event.Time(), Last: event.Time()})
		for _, row := range found {
			texts += string(row.Data)
		}
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
	return texts
}

func (h *house) expunging() int {
	h.t.Helper()
	return h.count("SELECT count(*) FROM history_expunges")
}

// differing are the lines of two texts that the other doesn't have.
func differing(a, b string) (only [2][]string) {
	for i, pair := range [2][2]string{{a, b}, {b, a}} {
		there := map[string]bool{}
		for line := range strings.Lines(pair[1]) {
			there[line] = true
		}
		for line := range strings.Lines(pair[0]) {
			if !there[line] {
				only[i] = append(only[i], line)
			}
		}
	}
	return only
}

// TestExpungingReachesStoredFiles: data of an event of a day in storage, and the responses to it, are shown to nobody
// once it is expunged, and soon no object has them. Everything else stays as it was, also of other tenants in the same
// files.
func TestExpungingReachesStoredFiles(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	store, path := h.folder()
	tenant, other := h.tenant(), h.tenant()
	day := h.historyDay(tenant, h.endpoint(tenant, "http://127.0.0.1:1", nil), 5, 40)
	h.historyDay(other, h.endpoint(other, "http://127.0.0.1:1", nil), 5, 30)
	events, texts := h.secrets(tenant, day, 3)
	before, others := h.historyRows(tenant), h.historyRows(other)
	h.work(h.keeper(store))
	for _, text := range texts {
		if n := len(objectsWith(t, path, text)); n != 2 {
			t.Fatalf("%d objects have %s, want events and attempts: the search must find it", n, text)
		}
	}
	event, text := events[1], texts[1]
	if got := h.storedTexts(store, tenant, event); !strings.Contains(got, text) {
		t.Fatalf("the stored event has %q", got)
	}
	done := h.expunge(store, tenant, event)
	if len(done.Events) != 1 || done.Cleared != 2 || len(done.Stored) != 1 || !done.Stored[0].Equal(day) {
		t.Errorf("expunged were %+v, want one event with two responses, of %s", done, day)
	}
	if got := h.storedTexts(store, tenant, event); got != "" {
		t.Errorf("before the files are written again a read shows %q", got)
	}
	if n := h.count("SELECT count(*) FROM events") + h.count("SELECT count(*) FROM deliveries") + h.count("SELECT count(*) FROM attempts"); n != 0 {
		t.Errorf("%d rows that were lent stay in the tables", n)
	}
	if again := h.expunge(store, tenant, event); len(again.Events) != 0 || h.expunging() != 1 {
		t.Errorf("a second time expunged %+v", again)
	}
	h.work(h.keeper(store))
	if with := objectsWith(t, path, text); len(with) != 0 || h.expunging() != 0 {
		t.Errorf("%v still have the data; %d expunges are open", with, h.expunging())
	}
	for _, kept := range []string{texts[0], texts[2]} {
		if n := len(objectsWith(t, path, kept)); n != 2 {
			t.Errorf("%d objects have %s, which nobody expunged", n, kept)
		}
	}
	if n := len(files(t, path)); n != 3 {
		t.Errorf("%d objects, want one a table", n)
	}
	h.published(store, tenant, 40)
	h.published(store, other, 30)
	h.reconciled()
	if n := h.count("SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND action IN ('event.expunge', 'history.expunged')", tenant); n != 2 {
		t.Errorf("the audit log has %d entries, want the request and its end", n)
	}
	if n := h.count("SELECT count(*) FROM history_days WHERE bytes = (SELECT sum(p.bytes) FROM history_parts p WHERE p.tenant_id = history_days.tenant_id)"); n != 2 {
		t.Errorf("%d days have the bytes of their parts", n)
	}
	if got := h.storedTexts(store, tenant, event); got != "" {
		t.Errorf("after the files were written again a read shows %q", got)
	}
	h.ask(tenant, day)
	h.ask(other, day)
	h.work(h.keeper(store))
	if h.historyRows(other) != others {
		t.Error("rows of the other tenant differ")
	}
	only := differing(before, h.historyRows(tenant))
	if len(only[0]) != 3 || len(only[1]) != 3 || strings.Contains(strings.Join(only[1], ""), "canary") {
		t.Errorf("rows that came back differ in %v, want the event and its two attempts", only)
	}
}

// TestExpungingSurvivesFailuresOfTheStore: whichever call fails, the next round ends the work.
func TestExpungingSurvivesFailuresOfTheStore(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	folder, path := h.folder()
	tenant, other := h.tenant(), h.tenant()
	day := h.historyDay(tenant, h.endpoint(tenant, "http://127.0.0.1:1", nil), 5, 60)
	h.historyDay(other, h.endpoint(other, "http://127.0.0.1:1", nil), 5, 5)
	events, texts := h.secrets(tenant, day, 50)
	h.work(h.keeper(folder))
	for i, event := range events {
		at := int64(2*i + 1) // a call and the one after it are mostly a write and its check
		h.expunge(folder, tenant, event)
		store := &breaking{Store: folder, at: at}
		h.work(h.keeper(store))
		failed := store.calls.Load() >= at
		if got := h.storedTexts(folder, tenant, event); got != "" {
			t.Errorf("after the failure of call %d a read shows %q", at, got)
		}
		h.reconciled()
		if failed && h.expunging() == 0 && len(objectsWith(t, path, texts[i])) > 0 {
			t.Errorf("after the failure of call %d the expunge counts as ended", at)
		}
		h.work(h.keeper(folder))
		if with := objectsWith(t, path, texts[i]); len(with) != 0 || h.expunging() != 0 || len(files(t, path)) != 3 {
			t.Fatalf("after the failure of call %d: %v have the data, %d expunges are open, objects %v", at, with, h.expunging(), files(t, path))
		}
		h.published(folder, tenant, 60)
		if !failed {
			return
		}
	}
	t.Error("the work has more calls than the test has events")
}

// TestKillsDontKeepWhatWasExpunged: a process that writes files again, or makes files of an older version's objects, is
// killed after a call of the store.
func TestKillsDontKeepWhatWasExpunged(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	store, path := h.folder()
	tenant := h.tenant()
	day := h.historyDay(tenant, h.endpoint(tenant, "http://127.0.0.1:1", nil), 5, 60)
	events, texts := h.secrets(tenant, day, 50)
	h.work(h.keeper(store))
	killed, ended := 0, 0
	for i, event := range events {
		call := 4*(i/2) + 1 // each twice: of files, and of objects of an older version
		h.expunge(store, tenant, event)
		if i%2 == 1 {
			h.asOlderVersions(store, tenant, day)
		}
		if h.keeperProcess(path, call, 0) {
			ended++
		} else {
			killed++
		}
		if got := h.storedTexts(store, tenant, event); got != "" {
			t.Errorf("after the kill at call %d a read shows %q", call, got)
		}
		h.reconciled()
		for tries := 0; h.expunging() > 0 || len(files(t, path)) != 3; tries++ {
			if tries == 3 {
				t.Fatalf("after the kill at call %d %d expunges are open; objects: %v", call, h.expunging(), files(t, path))
			}
			h.work(h.keeper(store))
		}
		if with := objectsWith(t, path, texts[i]); len(with) != 0 {
			t.Fatalf("after the kill at call %d %v have the data", call, with)
		}
		h.published(store, tenant, 60)
		if ended == 2 {
			break
		}
	}
	t.Logf("%d kills", killed)
	if killed < 20 || ended < 2 {
		t.Errorf("%d kills, and %d processes that ended", killed, ended)
	}
}

// TestExpungedDataComesBackNowhere: a day that is brought back before its files were written again comes back without
// the data, and so does a replay's response of another day.
func TestExpungedDataComesBackNowhere(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	store, path := h.folder()
	tenant := h.tenant()
	ep := h.endpoint(tenant, "http://127.0.0.1:1", nil)
	day := h.historyDay(tenant, ep, 5, 20)
	later := h.historyDay(tenant, ep, 4, 20)
	events, texts := h.secrets(tenant, day, 1)
	// A delivery of the later day was a replay of the event.
	var replay id.UUID
	h.query("SELECT id FROM deliveries WHERE tenant_id = $1 AND created_at >= $2 ORDER BY id LIMIT 1", []any{&replay}, tenant, later)
	h.exec("UPDATE deliveries SET event_id = $2 WHERE id = $1", replay, events[0])
	h.exec("UPDATE attempts SET response_excerpt = convert_to($2::text, 'UTF8') WHERE delivery_id = $1", replay, texts[0])
	h.work(h.keeper(store))
	if n := len(objectsWith(t, path, texts[0])); n != 3 {
		t.Fatalf("%d objects have the data", n)
	}
	if done := h.expunge(store, tenant, events[0]); len(done.Stored) != 2 {
		t.Fatalf("the days %v are written again, want both", done.Stored)
	}
	h.ask(tenant, day)
	h.work(h.keeper(store))
	if state, why := h.historyState(tenant, day); state != "back" {
		t.Fatalf("the day is %s: %s", state, why)
	}
	if n := h.count("SELECT count(*) FROM events WHERE id = $1 AND data IS NULL", events[0]); n != 1 || strings.Contains(h.historyRows(tenant), texts[0]) {
		t.Error("the day came back with the data")
	}
	if with := objectsWith(t, path, texts[0]); len(with) != 0 || h.expunging() != 0 {
		t.Errorf("%v have the data, %d expunges are open", with, h.expunging())
	}
	h.ask(tenant, later)
	h.work(h.keeper(store))
	if strings.Contains(h.historyRows(tenant), texts[0]) {
		t.Error("the replay's response came back")
	}
	if n := h.count("SELECT count(*) FROM deliveries WHERE tenant_id = $1", tenant); n != 40 {
		t.Errorf("%d deliveries came back, want 40", n)
	}
	h.reconciled()
}

// TestNoObjectOfAnOlderVersionStays: whatever call of the store fails while objects of lines become files, they are
// deleted in the end.
func TestNoObjectOfAnOlderVersionStays(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	folder, path := h.folder()
	tenant := h.tenant()
	day := h.historyDay(tenant, h.endpoint(tenant, "http://127.0.0.1:1", nil), 5, 10)
	h.work(h.keeper(folder))
	for at := int64(1); ; at++ {
		h.asOlderVersions(folder, tenant, day)
		store := &breaking{Store: folder, at: at}
		h.work(h.keeper(store))
		h.exec("UPDATE history_days SET failed_at = now() - interval '1 hour' WHERE failed_at IS NOT NULL")
		h.work(h.keeper(folder))
		if left := files(t, path); len(left) != 3 {
			t.Fatalf("after the failure of call %d these objects are there: %v", at, left)
		}
		h.published(folder, tenant, 10)
		if store.calls.Load() < at {
			return
		}
	}
}

// TestThePurgeOfATenantIsInItsBooks: they say how many deliveries in storage it removed, and since when no object has
// them.
func TestThePurgeOfATenantIsInItsBooks(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	folder, path := h.folder()
	tenant, other := h.tenant(), h.tenant()
	ep := h.endpoint(tenant, "http://127.0.0.1:1", nil)
	day := h.historyDay(tenant, ep, 5, 12)
	h.historyDay(tenant, ep, 4, 7)
	h.historyDay(tenant, ep, 2, 3) // still in the tables
	h.historyDay(other, h.endpoint(other, "http://127.0.0.1:1", nil), 5, 5)
	_, texts := h.secrets(tenant, day, 1)
	h.work(h.keeper(folder))
	h.asOlderVersions(folder, tenant, day)
	if err := maintenance.DeleteTenant(t.Context(), h.db, tenant, "they left", db.Author{Kind: "command"}); err != nil {
		t.Fatal(err)
	}
	h.exec("UPDATE tenants SET deleted_at = now() - interval '1 hour' WHERE id = $1", tenant)
	purge := func(store history.Store) {
		t.Helper()
		w := New(Config{DB: h.db, ListenURL: h.url, Log: h.log, Egress: h.policy, Keys: h.ring, Name: t.Name(), History: h.keeper(store)})
		if err := w.maintenance.FailQueued(t.Context(), ep); err != nil {
			t.Fatal(err)
		}
		if err := w.maintenance.Do(t.Context(), "erase deleted tenants"); err != nil {
			t.Fatal(err)
		}
	}
	// While the store fails, the books say what leaves, and not that it has left.
	for at := int64(1); at <= 4; at++ {
		purge(&breaking{Store: folder, at: at})
		if n := h.count("SELECT count(*) FROM books WHERE tenant_id = $1 AND purged_at IS NOT NULL", tenant) + h.count("SELECT count(*) FROM tenants WHERE erased_at IS NOT NULL"); n != 0 {
			t.Fatalf("the tenant counts as purged although call %d failed", at)
		}
	}
	purge(folder)
	if with := objectsWith(t, path, texts[0]); len(with) != 0 {
		t.Errorf("%v have data of the tenant", with)
	}
	if with := objectsWith(t, path, id.Tenant.Format(tenant)); len(with) != 0 {
		t.Errorf("%v have rows of the tenant", with)
	}
	var counts string
	h.query("SELECT string_agg(purged::text || ' ' || (purged_at IS NOT NULL), ', ' ORDER BY day) FROM books WHERE tenant_id = $1", []any{&counts}, tenant)
	if counts != "12 true, 7 true, 0 false" {
		t.Errorf("the books have %s", counts)
	}
	var details string
	h.query("SELECT details::text FROM audit_log WHERE tenant_id = $1 AND action = 'tenant.erased'", []any{&details}, tenant)
	if !strings.Contains(details, `"stored_deliveries": 19`) {
		t.Errorf("the audit log has %s", details)
	}
	h.published(folder, other, 5)
	h.reconciled()
}

// TestAStoreThatFailsIsNotAskedAgainAtOnce: open tables that could not be written wait ever longer, and then are.
func TestAStoreThatFailsIsNotAskedAgainAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	folder, path := h.folder()
	tenant := h.tenant()
	day := h.historyDay(tenant, h.endpoint(tenant, "http://127.0.0.1:1", nil), 5, 10)
	events, texts := h.secrets(tenant, day, 1)
	h.work(h.keeper(folder))
	h.expunge(folder, tenant, events[0])
	store := &breaking{Store: folder, at: 1}
	k := h.keeper(store)
	h.work(k)
	asked := store.calls.Load()
	for range 3 {
		h.work(k)
	}
	if n := store.calls.Load(); n != asked {
		t.Errorf("after a failure the store was asked %d times more at once", n-asked)
	}
	h.work(h.keeper(folder))
	if with := objectsWith(t, path, texts[0]); len(with) != 0 {
		t.Errorf("%v have the data", with)
	}
	for failures, want := range map[int]time.Duration{1: 10 * time.Second, 2: 20 * time.Second, 6: 320 * time.Second, 7: 10 * time.Minute, 1000: 10 * time.Minute} {
		if got := domainhistory.Pause(failures); got != want {
			t.Errorf("after %d failures the pause is %s, want %s", failures, got, want)
		}
	}
}
