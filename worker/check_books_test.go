package worker

import (
	"encoding/json"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/books"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// check goes over all pages once and returns how many differ.
func (h *house) check() (differences int) {
	h.t.Helper()
	n, err := h.db.CheckBooks(h.t.Context(), 0, 1_000_000)
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func TestTheCheckOfTheBooksFindsARowThatIsGone(t *testing.T) {
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
		u := row(tt.pick, tt.of)
		h.exec(tt.take, u)
		if n := h.check(); n == 0 {
			t.Errorf("%s: nothing is found", tt.name)
			continue
		}
		var details []byte
		var amount int64
		h.query("SELECT details, amount FROM book_differences WHERE tenant_id = $1 AND ended_at IS NULL", []any{&details, &amount}, tt.of)
		var f books.Finding
		if err := json.Unmarshal(details, &f); err != nil || amount == 0 {
			t.Fatal(err, amount)
		}
		named := false
		for _, one := range f.Rows {
			named = named || one.Delivery == id.Delivery.Format(u) && one.What == books.Sentences[tt.word]
		}
		if !named || books.Amount(f.Books, f.Tables) != amount {
			t.Errorf("%s: %s is not named: %s", tt.name, id.Delivery.Format(u), details)
		}
	}
	now := time.Now()
	h.exec("INSERT INTO operators (id, email, created_at) VALUES ($1, 'op@example.com', now())", db.NewID())
	for range 3 {
		if err := h.db.AlertBooks(t.Context(), db.Links{BaseURL: "https://posthorn.example.com"}, now); err != nil {
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

func TestTheCheckOfTheBooksIsBoundedAndComesToEveryPage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenants := make([]id.UUID, 4)
	for i := range tenants {
		tenants[i] = h.tenant()
		h.endpoint(tenants[i], "https://hooks.example.com/", nil)
		h.emitN(tenants[i], 3)
	}
	h.exec("DELETE FROM queue WHERE tenant_id = $1", tenants[3])
	if err := h.db.Worker(t.Context(), func(q *db.Queries) error { _, err := q.FoldLedger(t.Context(), 1000); return err }); err != nil {
		t.Fatal(err)
	}
	// A budget of one page: each call counts at least one, and none more than that.
	calls := 0
	for ; h.count("SELECT count(*) FROM book_differences") == 0; calls++ {
		if _, err := h.db.CheckBooks(t.Context(), 0, 1); err != nil {
			t.Fatal(err)
		}
		if calls > 20 {
			t.Fatal("the check never comes to the page that differs")
		}
	}
	if calls < 2 {
		t.Errorf("%d calls counted all pages: the budget bounds nothing", calls)
	}
	if n, err := h.db.CheckBooks(t.Context(), time.Hour, 1_000_000); err != nil || n != 0 {
		t.Errorf("checked again within the hour: %d %v", n, err)
	}
}
