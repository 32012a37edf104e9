package worker

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/maintenance"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// idAt is an id of a moment.
func idAt(at time.Time) id.UUID {
	var random [10]byte
	_, _ = rand.Read(random[:])
	return id.New(at, random)
}

// backdated stores a waiting delivery as if it had been emitted at a moment, its event at another.
func (h *house) backdated(tenant, ep id.UUID, eventAt, deliveryAt time.Time, state int16, key *string) (dlv id.UUID) {
	h.t.Helper()
	event, dlv := idAt(eventAt), idAt(deliveryAt)
	h.exec("INSERT INTO events (tenant_id, created_at, id, type, data, key, routing_version) VALUES ($1, $2, $3, 'order.completed', '{}', $4, 1)",
		tenant, event.Time(), event, key)
	h.exec("INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type) VALUES ($1, $2, $3, $4, $5, 'order.completed')",
		tenant, dlv.Time(), dlv, event, ep)
	var due *time.Time
	if state == queue.Scheduled || state == queue.Deferred {
		at := time.Now().Add(time.Hour)
		due = &at
	}
	h.exec("INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id, state, due_at, order_key) VALUES ($1, $2, $3, $4, $5, $6, $7)",
		tenant, dlv, event, ep, state, due, key)
	h.exec("INSERT INTO ledger (book_tenant, book_day, accepted, delivered, failed, canceled, expunged) VALUES (ARRAY[$1::uuid], ARRAY[($2::timestamptz AT TIME ZONE 'UTC')::date], '{1}', '{0}', '{0}', '{0}', '{0}')",
		tenant, dlv.Time())
	return dlv
}

func TestRetentionDropsDaysUnderLiveWork(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx := t.Context()
	tenant := h.tenant()
	r := newReceiver(t, nil)
	h.endpoint(tenant, r.URL, nil)
	paused := h.endpoint(tenant, r.URL+"/paused", nil)
	h.exec("UPDATE endpoints SET event_types = '{never}' WHERE id = $1", paused)
	h.exec("UPDATE tenants SET routing_version = routing_version + 1")
	h.pause(tenant, paused)
	w, _ := h.worker(true)

	stop, emitted := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { emitted <- n }()
		for {
			select {
			case <-stop:
				return
			default:
				h.emitN(tenant, 5)
				n += 5
			}
		}
	}()
	eventually(t, 10*time.Second, "work is under way", func() bool { return len(r.seen()) > 50 })

	now := time.Now()
	old, young := now.AddDate(0, 0, -120), now.AddDate(0, 0, -80)
	for _, day := range []time.Time{old, young} {
		if _, err := h.db.MakePartitions(ctx, day.AddDate(0, 0, -1), day.AddDate(0, 0, 1)); err != nil {
			t.Fatal(err)
		}
	}
	key := "k"
	for _, state := range []int16{queue.Ready, queue.Scheduled, queue.Blocked, queue.Deferred} {
		h.backdated(tenant, paused, old, old.Add(time.Second), state, &key)
	}
	lateReplay := h.backdated(tenant, paused, old, now.Add(-time.Minute), queue.Ready, nil)
	kept := h.backdated(tenant, paused, young, young.Add(time.Second), queue.Ready, nil)
	h.balanced()
	if err := w.maintenance.DropExpiredDays(ctx, now); err != nil {
		t.Fatal(err)
	}
	if n := h.count("SELECT count(*) FROM dead_letters JOIN deliveries d ON d.id = delivery_id WHERE d.reason = $1 AND d.created_at < $2",
		int16(delivery.RetentionEnded), young); n != 4 {
		t.Errorf("%d of the four deliveries that waited for too long are shown as dead letters", n)
	}
	if status, _, _ := h.state(lateReplay); status != delivery.Pending {
		t.Errorf("a young delivery of an old event is %s, want pending", status)
	}
	if err := w.maintenance.DropExpiredDays(ctx, now.AddDate(0, 0, 8)); err != nil {
		t.Fatal(err)
	}
	before := len(r.seen())
	eventually(t, 10*time.Second, "work goes on", func() bool { return len(r.seen()) > before+50 })
	close(stop)
	n := <-emitted
	h.settled(20*time.Second, delivery.Delivered, n)

	days, err := maintenance.PartitionDays(ctx, h.db)
	if err != nil {
		t.Fatal(err)
	}
	cutoff := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -90)
	oldest := days[0]
	if oldest.Before(cutoff) {
		t.Errorf("%s is still there", oldest.Format(time.DateOnly))
	}
	if want := young.UTC().Truncate(24*time.Hour).AddDate(0, 0, -1); !oldest.Equal(want) {
		t.Errorf("the oldest day is %s, want %s, which some tenant keeps", oldest.Format(time.DateOnly), want.Format(time.DateOnly))
	}
	if status, reason, _ := h.state(lateReplay); status != delivery.Failed || reason != delivery.RetentionEnded {
		t.Errorf("a week later the young delivery of an old event is %s, %s; want failed, expired", status, reason)
	}
	if n := h.count("SELECT count(*) FROM dead_letters WHERE delivery_id = $1 AND event_type = 'order.completed'", lateReplay); n != 1 {
		t.Error("and not listed as a dead letter")
	}
	if status, _, _ := h.state(kept); status != delivery.Pending || h.waiting(paused) != 1 {
		t.Errorf("what lies within the retention is %s, %d wait", status, h.waiting(paused))
	}
	// The deliveries were dropped with their day; the totals still count them.
	eventually(t, 10*time.Second, "the books of the dropped day say that its four deliveries failed", func() bool {
		return h.count("SELECT count(*) FROM books WHERE day = $1 AND accepted = 4 AND failed = 4", old.UTC().Truncate(24*time.Hour)) == 1
	})
	if n := h.count("SELECT count(*) FROM dead_letters WHERE delivery_id < $1", id.FirstAt(cutoff)); n != 0 {
		t.Errorf("%d dead letters point to what is gone", n)
	}
}

// An event is accepted for a moment that lies beyond the retention of all tenants.
func TestWhatIsSentLaterIsNotDroppedBeforeIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.exec("UPDATE tenants SET retention_days = 7")
	r := newReceiver(t, nil)
	ep := h.endpoint(tenant, r.URL, nil)
	later := item("order.completed", "", 1)
	now := time.Now()
	later.Emission.DeliverAt = now.AddDate(0, 0, 20)
	h.emit(tenant, later)
	w, _ := h.worker(true)
	for _, days := range []int{9, 19, 24} { // the last one within the retries
		if err := w.maintenance.DropExpiredDays(t.Context(), now.AddDate(0, 0, days)); err != nil {
			t.Fatal(err)
		}
		a, b := h.count("SELECT count(*) FROM deliveries WHERE status = 0"), h.count("SELECT count(*) FROM events")
		if a != 1 || b != 1 || h.waiting(ep) != 1 {
			t.Fatalf("after %d days: %d deliveries wait, of %d events", days, a, b)
		}
	}
}

// The tenant keeps less than another one, so its day is there: it sees what is still to be sent, and can cancel it.
func TestATenantSeesWhatWaitsWhateverItsRetention(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant, other := h.tenant(), h.tenant()
	h.exec("UPDATE tenants SET retention_days = 7 WHERE id = $1", tenant)
	r := newReceiver(t, nil)
	ep := h.endpoint(tenant, r.URL, nil)
	h.endpoint(other, r.URL, nil)
	now := time.Now()
	old := now.AddDate(0, 0, -20)
	if _, err := h.db.MakePartitions(t.Context(), old, old); err != nil {
		t.Fatal(err)
	}
	list := func(of id.UUID) (ids []id.UUID) {
		t.Helper()
		h.as(of, func(q *sql.Queries) error {
			page, err := deliveries.List(t.Context(), q, of, deliveries.ListOptions{Range: show.Range{Limit: 10}})
			for _, row := range page.Rows {
				ids = append(ids, row.ID)
			}
			return err
		})
		return ids
	}
	canceled := h.backdated(tenant, ep, old, old, queue.Deferred, nil)
	fails := h.backdated(tenant, ep, old.Add(time.Second), old.Add(time.Second), queue.Deferred, nil)
	h.exec("UPDATE events SET deliver_at = $1 WHERE tenant_id = $2", now.Add(time.Hour), tenant)
	if got := list(tenant); len(got) != 2 {
		t.Errorf("of two deliveries that wait %d are listed", len(got))
	}
	if got := list(other); len(got) != 0 {
		t.Errorf("another tenant sees %v", got)
	}
	// Its endpoint is paused now: what is to be sent later is not held for too long.
	h.pause(tenant, ep)
	holding, err := endpoints.Holding(t.Context(), h.db, id.UUID{}, 10)
	if err != nil || len(holding) != 1 {
		t.Fatal(holding, err)
	}
	if _, err := endpoints.ExpireHeld(t.Context(), h.db, holding[0], now, 10); err != nil || h.waiting(ep) != 2 {
		t.Errorf("%d wait: %v", h.waiting(ep), err)
	}
	h.as(tenant, func(q *sql.Queries) error {
		_, err := deliveries.Cancel(t.Context(), q, tenant, canceled)
		return err
	})
	_, err = endpoints.ExpireHeld(t.Context(), h.db, holding[0], now.AddDate(0, 0, 8), 10)
	if err != nil || h.waiting(ep) != 0 {
		t.Errorf("%d wait after its time: %v", h.waiting(ep), err)
	}
	if got := list(tenant); !slices.Contains(got, fails) {
		t.Errorf("what failed late is not shown: %v", got)
	}
	h.exec("DELETE FROM late_days")
	if got := list(tenant); len(got) != 0 {
		t.Errorf("after its week it is still shown: %v", got)
	}
}

// A row can belong to a dropped day: it was locked when the day was settled, or the day was dropped by hand.
func TestARowOfADroppedDayEndsAsExpired(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	r := newReceiver(t, nil)
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.Ordering = "strict" })
	old := time.Now().AddDate(0, 0, -60)
	if _, err := h.db.MakePartitions(t.Context(), old, old); err != nil {
		t.Fatal(err)
	}
	strict := queue.StrictKey
	h.backdated(tenant, ep, old, old.Add(time.Second), queue.Ready, &strict)
	h.backdated(tenant, ep, old, old.Add(2*time.Second), queue.Blocked, &strict)
	if err := maintenance.DropDay(t.Context(), h.db, old.UTC().Truncate(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	h.emit(tenant, item("order.completed", "", 7))
	h.worker(true)
	h.settled(10*time.Second, delivery.Delivered, 1)
	eventually(t, 10*time.Second, "both rows are gone", func() bool { return h.count("SELECT count(*) FROM queue") == 0 })
	if got := ns(r.seen()); len(got) != 1 || got[0] != 7 {
		t.Errorf("events %v were sent", got)
	}
	if n := h.count("SELECT count(*) FROM dead_letters WHERE reason = $1", int16(delivery.RetentionEnded)); n != 2 {
		t.Errorf("%d dead letters say expired, want 2", n)
	}
	eventually(t, 10*time.Second, "the books say that they failed", func() bool {
		return h.count("SELECT count(*) FROM books WHERE accepted = 2 AND failed = 2") == 1
	})
}

func TestPartitionsAreCreatedAhead(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx := context.Background()
	today := time.Now().UTC().Truncate(24 * time.Hour)
	for n := 2; n <= 7; n++ {
		if err := maintenance.DropDay(ctx, h.db, today.AddDate(0, 0, n)); err != nil {
			t.Fatal(err)
		}
	}
	h.worker(true)
	eventually(t, 20*time.Second, "a week of days lies ahead", func() bool {
		days, err := maintenance.PartitionDays(ctx, h.db)
		return err == nil && len(days) > 0 && !days[len(days)-1].Before(today.AddDate(0, 0, 7))
	})
	if n := h.count(`SELECT count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent IN ('events'::regclass, 'deliveries'::regclass, 'attempts'::regclass)
		AND right(c.relname, 8) BETWEEN to_char($1::date, 'YYYYMMDD') AND to_char($1::date + 7, 'YYYYMMDD')`, today); n != 3*8 {
		t.Errorf("%d partitions from today on, want 24", n)
	}
}
