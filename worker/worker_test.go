package worker

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
)

func TestAnEmittedEventArrivesOnceAndIsRecorded(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	h.endpoint(tenant, r.URL+"/hook?token=abc", nil)
	h.worker(true)
	for i := range 200 {
		h.emit(tenant, item("order.completed", "", i))
	}
	eventually(t, 10*time.Second, "all deliveries are recorded", func() bool {
		return h.count("SELECT count(*) FROM deliveries WHERE status = 2") == 200
	})
	seen := map[string]int{}
	for _, a := range r.seen() {
		seen[a.id]++
	}
	if len(seen) != 200 || len(r.seen()) != 200 {
		t.Fatalf("%d events in %d arrivals, want 200 in 200", len(seen), len(r.seen()))
	}
	if n := h.count("SELECT count(*) FROM queue"); n != 0 {
		t.Errorf("%d rows left in the queue", n)
	}
	if n := h.count("SELECT count(*) FROM attempts WHERE status = 200 AND number = 1 AND NOT late AND url NOT LIKE '%abc%'"); n != 200 {
		t.Errorf("%d attempts as expected, want 200", n)
	}
	eventually(t, 10*time.Second, "the ledger is folded", func() bool {
		return h.count("SELECT count(*) FROM books WHERE accepted = 200 AND delivered = 200 AND failed = 0") == 1
	})
}

func TestAConflictThatIsTakenForDeliveredCountsAsASuccessInTheRollUps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		accept bool
		want   int16
	}{
		{409, true, statOK},
		{409, false, statClient},
		{204, false, statOK},
		{302, false, statRedirect},
		{500, false, statServer},
		{999, false, statNetwork},
	} {
		r := delivery.Result{Status: tt.status}
		if got := statClass(r, delivery.Classify(r, tt.accept)); got != tt.want {
			t.Errorf("%d (accepted: %v) counts as class %d, want %d", tt.status, tt.accept, got, tt.want)
		}
	}
}

func TestADeletedEndpointWithoutSecretsIsNoError(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	w := &Worker{log: slog.New(slog.NewTextHandler(&log, nil))}
	deleted := time.Now()
	if s := w.settingsOf(queue.Leased{Endpoint: sql.Endpoint{DeletedAt: &deleted}}); s != nil || log.Len() > 0 {
		t.Errorf("it has settings %v, and the log says %q", s, log.String())
	}
}
