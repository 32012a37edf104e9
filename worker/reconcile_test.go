package worker

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/maintenance"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/reconcile"
)

// check compares all pages once and returns how many differ.
func (h *house) check() (differences int) {
	h.t.Helper()
	n, err := maintenance.Reconcile(h.t.Context(), h.db, 0, 1_000_000)
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func TestReconcilingFindsADeletedRow(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, func(a arrival) int {
		if a.data.N == 3 {
			return 400
		}
		return 200
	})
	tenant, other := h.tenant(), h.tenant()
	h.endpoint(tenant, r.URL, nil)
	waits := h.endpoint(other, r.URL, func(s *endpoint.Settings) { s.MaxInFlight = 1 })
	h.pause(other, waits)
	h.emitN(other, 3)
	_, stop := h.worker(true)
	h.emitN(tenant, 5)
	h.settled(20*time.Second, delivery.Delivered, 4)
	h.settled(20*time.Second, delivery.Failed, 1)
	stop()
	if n := h.check(); n != 0 {
		t.Fatalf("%d pages differ before anything is gone", n)
	}
	row := func(sql string, tenant id.UUID) id.UUID {
		var raw [16]byte
		h.query(sql, []any{&raw}, tenant)
		return raw
	}
	for _, tt := range []struct {
		name, pick, take, word string
		of                     id.UUID
	}{
		{
			"a delivery that was delivered", "SELECT id FROM deliveries WHERE tenant_id = $1 AND status = 2 LIMIT 1",
			"DELETE FROM deliveries WHERE id = $1", "attempted", tenant,
		},
		{
			"a dead letter's delivery", "SELECT id FROM deliveries WHERE tenant_id = $1 AND status = 3 LIMIT 1",
			"DELETE FROM deliveries WHERE id = $1", "deadletter", tenant,
		},
		{
			"a place in the queue", "SELECT delivery_id FROM queue WHERE tenant_id = $1 LIMIT 1",
			"DELETE FROM queue WHERE delivery_id = $1", "unqueued", other,
		},
		{
			"a delivery that waits", "SELECT d.id FROM deliveries d JOIN queue q ON q.delivery_id = d.id WHERE d.tenant_id = $1 LIMIT 1",
			"DELETE FROM deliveries WHERE id = $1", "unknown", other,
		},
	} {
		deliveryID := row(tt.pick, tt.of)
		h.exec(tt.take, deliveryID)
		if n := h.check(); n == 0 {
			t.Errorf("%s: nothing is found", tt.name)
			continue
		}
		var details []byte
		var amount int64
		h.query("SELECT details, amount FROM book_differences WHERE tenant_id = $1 AND ended_at IS NULL", []any{&details, &amount}, tt.of)
		var f reconcile.Finding
		if err := json.Unmarshal(details, &f); err != nil || amount == 0 {
			t.Fatal(err, amount)
		}
		named := false
		for _, one := range f.Rows {
			named = named || one.Delivery == id.Delivery.Format(deliveryID) && one.What == reconcile.Sentences[tt.word]
		}
		if !named || reconcile.Amount(f.Ledger, f.Tables) != amount {
			t.Errorf("%s: %s is not named: %s", tt.name, id.Delivery.Format(deliveryID), details)
		}
	}
	now := time.Now()
	h.exec("INSERT INTO operators (id, email, created_at) VALUES ($1, 'op@example.com', now())", db.NewID())
	for range 3 {
		if err := maintenance.AlertDiscrepancies(t.Context(), h.db, accounts.Links{BaseURL: "https://posthorn.example.com"}, now); err != nil {
			t.Fatal(err)
		}
	}
	if n := h.count("SELECT count(*) FROM mails WHERE recipient = 'op@example.com' AND key LIKE 'alert:books:%'"); n != 1 {
		t.Errorf("%d mails to the operator of one day, want 1", n)
	}
	if n := h.count("SELECT sum(amount)::int FROM book_differences WHERE ended_at IS NULL"); n < 2 {
		t.Errorf("the books differ by %d", n)
	}
}

func TestADifferenceEndsWhenThePageAgreesAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.endpoint(tenant, "https://hooks.example.com/", nil)
	h.emitN(tenant, 1)
	h.exec("INSERT INTO ledger (book_tenant, book_day, accepted, delivered, failed, canceled, expunged) VALUES (ARRAY[$1::uuid], ARRAY[(now() AT TIME ZONE 'UTC')::date], '{2}', '{0}', '{0}', '{0}', '{0}')", tenant)
	if n := h.check(); n != 1 {
		t.Fatalf("%d pages differ, want 1", n)
	}
	if n := h.check(); n != 1 || h.count("SELECT count(*) FROM book_differences") != 1 {
		t.Errorf("%d pages differ, want the same one", n)
	}
	h.exec("DELETE FROM ledger WHERE accepted = '{2}'")
	if n := h.check(); n != 0 {
		t.Errorf("%d pages differ still", n)
	}
	if n := h.count("SELECT count(*) FROM book_differences WHERE ended_at IS NOT NULL"); n != 1 {
		t.Error("the difference has not ended")
	}
}

func TestReconcilingIsBoundedAndReachesEveryPage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenants := make([]id.UUID, 4)
	for i := range tenants {
		tenants[i] = h.tenant()
		h.endpoint(tenants[i], "https://hooks.example.com/", nil)
		h.emitN(tenants[i], 3)
	}
	h.exec("DELETE FROM queue WHERE tenant_id = $1", tenants[3])
	h.folded()
	// A budget of one page: each call counts at least one, and none more than that.
	calls := 0
	for ; h.count("SELECT count(*) FROM book_differences") == 0; calls++ {
		if _, err := maintenance.Reconcile(t.Context(), h.db, 0, 1); err != nil {
			t.Fatal(err)
		}
		if calls > 20 {
			t.Fatal("the check never comes to the page that differs")
		}
	}
	if calls < 2 {
		t.Errorf("%d calls counted all pages: the budget bounds nothing", calls)
	}
	if n, err := maintenance.Reconcile(t.Context(), h.db, time.Hour, 1_000_000); err != nil || n != 0 {
		t.Errorf("checked again within the hour: %d %v", n, err)
	}
	h.exec("UPDATE chores SET done_at = done_at - interval '20 minutes' WHERE name LIKE 'check the books%'")
	if err := h.db.Worker(t.Context(), func(q *sql.Queries) error {
		state, err := maintenance.ReadReconcileState(t.Context(), q)
		if state.Unchecked < 1200 || state.Unchecked > 1260 || state.Differs != 3 {
			t.Errorf("%+v", state)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// folded returns the totals after the ledger is empty.
func (h *house) folded() {
	h.t.Helper()
	if err := h.db.Worker(h.t.Context(), func(q *sql.Queries) error {
		_, err := q.FoldLedger(h.t.Context(), 1000)
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
}

func TestReconcilingFindsWhatWasChangedInSQL(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, func(a arrival) int {
		if a.data.N == 2 {
			return 400
		}
		return 200
	})
	tenant := h.tenant()
	h.endpoint(tenant, r.URL, nil)
	_, stop := h.worker(true)
	h.emitN(tenant, 3)
	h.settled(20*time.Second, delivery.Delivered, 2)
	h.settled(20*time.Second, delivery.Failed, 1)
	stop()
	h.emitN(tenant, 2)
	row := func(status int) (uuid id.UUID) {
		var raw [16]byte
		h.query("SELECT id FROM deliveries WHERE status = $1 LIMIT 1", []any{&raw}, status)
		return raw
	}
	waits := row(0)
	h.cancel(tenant, waits)
	h.folded()
	if n := h.check(); n != 0 {
		t.Fatalf("%d pages differ before anything was changed", n)
	}
	const status, entry = "UPDATE deliveries SET status = $2 WHERE id = $1", "UPDATE books SET delivered = delivered + $2 WHERE tenant_id = $1"
	const place = "UPDATE queue SET delivery_id = (SELECT id FROM deliveries WHERE status = $2 LIMIT 1) WHERE tenant_id = (SELECT tenant_id FROM deliveries WHERE id = $1)"
	for _, tt := range []struct {
		name     string
		of       id.UUID
		sql      string
		do, undo int
		word     string // of the row; none: unknown
	}{
		{"a delivered one failed", row(2), status, 3, 2, "unlisted"},
		{"a delivered one is canceled", row(2), status, 4, 2, "uncalled"},
		{"a delivered one waits", row(2), status, 1, 2, "unqueued"},
		{"a failed one is delivered", row(3), status, 2, 3, "deadletter"},
		{"a canceled one is delivered", row(4), status, 2, 4, "canceled"},
		{"one that waits is delivered", row(0), status, 2, 0, "ended"},
		{"the place of one that waits is another's", row(0), place, 2, 0, "unqueued"},
		{"a page of the books", tenant, entry, 1, -1, ""},
		{"a delivered one is of another day", row(2), "UPDATE deliveries SET created_at = created_at + make_interval(days => $2) WHERE id = $1", 1, -1, "attempted"},
	} {
		h.exec(tt.sql, tt.of, tt.do)
		if n := h.check(); n != 1 {
			t.Errorf("%s: %d pages differ", tt.name, n)
		}
		var details []byte
		h.query("SELECT coalesce((SELECT details FROM book_differences WHERE ended_at IS NULL ORDER BY day LIMIT 1), '{}')", []any{&details})
		var f reconcile.Finding
		if err := json.Unmarshal(details, &f); err != nil {
			t.Fatal(err)
		}
		named := tt.word == "" && len(f.Rows) == 0
		for _, one := range f.Rows {
			named = named || one.Delivery == id.Delivery.Format(tt.of) && one.What == reconcile.Sentences[tt.word]
		}
		if !named {
			t.Errorf("%s: %s", tt.name, details)
		}
		h.exec(tt.sql, tt.of, tt.undo)
		if n := h.check(); n != 0 || h.count("SELECT count(*) FROM book_differences WHERE ended_at IS NULL") != 0 {
			t.Errorf("%s: %d pages differ when it is fixed", tt.name, n)
		}
	}
}

// Of an event without subscribers only the count shows that it is missing.
func TestReconcilingFindsADeletedEvent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, "https://hooks.example.com/", nil)
	h.pause(tenant, ep)
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -3)
	if _, err := h.db.MakePartitions(t.Context(), day, day); err != nil {
		t.Fatal(err)
	}
	event := h.backdated(tenant, ep, day.Add(time.Hour), day.Add(time.Hour), queue.Ready, nil)
	lone := idAt(day.Add(2 * time.Hour))
	h.exec("INSERT INTO events (tenant_id, created_at, id, type, data, routing_version) VALUES ($1, $2, $3, 'order.completed', '{}', 1)", tenant, lone.Time(), lone)
	if n := h.check(); n != 0 {
		t.Fatalf("%d pages differ by events that the books did not know of then", n)
	}
	h.exec("UPDATE platform SET events_from = $1", day)
	if n := h.check(); n != 1 {
		t.Fatalf("%d pages differ by events that are not in the books", n)
	}
	h.exec("INSERT INTO books (tenant_id, day, events) VALUES ($1, $2, 2)", tenant, day)
	if n := h.check(); n != 0 {
		t.Fatalf("%d pages differ", n)
	}
	h.exec("DELETE FROM events WHERE id = $1", lone)
	if n := h.check(); n != 1 {
		t.Errorf("%d pages differ without an event", n)
	}
	h.exec("DELETE FROM events")
	if n, named := h.check(), h.count("SELECT count(*) FROM book_differences WHERE amount = 2 AND details->'rows' @> jsonb_build_array(jsonb_build_object('delivery', $1::text, 'what', $2::text))",
		id.Delivery.Format(event), reconcile.Sentences["eventless"]); n != 1 || named != 1 {
		t.Errorf("%d pages differ without any event, %d name the delivery", n, named)
	}
}

// A day that retention drops is not a discrepancy; a day that is missing for another reason is.
func TestReconcilingFindsADroppedDay(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, "https://hooks.example.com/", nil)
	h.pause(tenant, ep)
	midnight := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -5)
	if _, err := h.db.MakePartitions(t.Context(), midnight.AddDate(0, 0, -1), midnight); err != nil {
		t.Fatal(err)
	}
	h.exec("UPDATE platform SET days_from = $1", midnight.AddDate(0, 0, -1))
	for _, at := range []time.Time{midnight.Add(-time.Millisecond), midnight, midnight.Add(time.Millisecond)} {
		h.backdated(tenant, ep, at, at, queue.Ready, nil)
	}
	if n := h.check(); n != 0 {
		t.Fatalf("%d pages differ on both sides of midnight", n)
	}
	for _, table := range []string{"deliveries", "attempts", "events"} {
		h.exec("RESET ROLE; DROP TABLE " + table + "_y" + midnight.Format("20060102") + "; SET ROLE posthorn_console")
		if n := h.check(); n != 1 || h.count("SELECT count(*) FROM book_differences WHERE ended_at IS NULL AND amount = 2 AND day = $1", midnight) != 1 {
			t.Errorf("without %s of a day %d pages differ", table, n)
		}
	}
	w, _ := h.worker(false)
	if err := w.maintenance.DropExpiredDays(t.Context(), midnight.AddDate(0, 0, 91)); err != nil {
		t.Fatal(err)
	}
	h.folded()
	if n := h.check(); n != 0 || h.count("SELECT count(*) FROM book_differences") != 0 {
		t.Errorf("%d pages differ of days that retention has dropped", n)
	}
	if n := h.count("SELECT count(*) FROM books WHERE accepted = failed"); n != 2 {
		t.Errorf("the books know of %d days that are gone, want 2", n)
	}
	days, err := maintenance.PartitionDays(t.Context(), h.db)
	if err != nil || !days[0].After(midnight) {
		t.Errorf("%v %v", days[:1], err)
	}
}

func TestAnAcceptedDifferenceAlertsNobodyUntilItChanges(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.endpoint(tenant, "https://hooks.example.com/", nil)
	h.emitN(tenant, 5)
	h.folded()
	lose := func() {
		h.exec("DELETE FROM queue WHERE delivery_id = (SELECT delivery_id FROM queue WHERE tenant_id = $1 LIMIT 1)", tenant)
	}
	differs := func() (state sql.ReconcileStateRow) {
		h.check()
		if err := h.db.Worker(t.Context(), func(q *sql.Queries) (err error) {
			state, err = maintenance.ReadReconcileState(t.Context(), q)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return state
	}
	lose()
	if n := differs().Differs; n != 1 {
		t.Fatalf("differs by %d", n)
	}
	var day time.Time
	var gap string
	h.query("SELECT day, gap FROM book_differences", []any{&day, &gap})
	by := db.Author{Kind: "operator", ID: "opr_1"}
	if err := maintenance.AcceptDiscrepancy(t.Context(), h.db, tenant, day, "queued -2", by.Because("another")); !errors.Is(err,
		maintenance.ErrDiscrepancyChanged) {
		t.Errorf("one that was not shown: %v", err)
	}
	for i, want := range []error{nil, maintenance.ErrDiscrepancyChanged} {
		if err := maintenance.AcceptDiscrepancy(t.Context(), h.db, tenant, day, gap, by.Because("lost with the disk")); !errors.Is(err, want) {
			t.Errorf("time %d: %v", i+1, err)
		}
	}
	if n := differs().Differs; n != 0 {
		t.Errorf("the accepted one still counts: %d", n)
	}
	h.exec("INSERT INTO operators (id, email, created_at) VALUES ($1, 'op@example.com', now())", db.NewID())
	if err := maintenance.AlertDiscrepancies(t.Context(), h.db, accounts.Links{BaseURL: "https://posthorn.example.com"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if n := h.count("SELECT count(*) FROM mails"); n != 0 {
		t.Errorf("%d mails about what was accepted", n)
	}
	if n := h.count("SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND action = 'books.accepted' AND reason = 'lost with the disk'", tenant); n != 1 {
		t.Errorf("%d entries in the audit log", n)
	}
	lose()
	if n := differs().Differs; n != 2 {
		t.Errorf("one more is lost, and the books differ by %d", n)
	}
}
