package feeds

import (
	"context"
	"testing"
	"time"

	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/feed"
)

// told are the notices about feeds, by reason and consumer.
func (h *house) told() (list []string) {
	h.t.Helper()
	rows, err := h.sql.Query(context.Background(), `SELECT concat_ws(' ', details ->> 'reason', details ->> 'consumer', details ->> 'disabled')
		FROM notices WHERE kind = 'feed.unread' ORDER BY id`)
	if err != nil {
		h.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			h.t.Fatal(err)
		}
		list = append(list, one)
	}
	return list
}

func (h *house) assess(now time.Time) {
	h.t.Helper()
	if err := Assess(h.t.Context(), h.db, now); err != nil {
		h.t.Fatal(err)
	}
}

func TestALateConsumerIsToldOfOnceADay(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	f := h.feed(nil)
	h.consumer(f, "warehouse", feed.Start{})
	h.consumer(f, "mail", feed.Start{})
	h.emit(at(time.Now()))
	h.settle()
	h.ack(f, "mail", h.read(f, Options{Consumer: "mail"}).Next)
	noon := time.Now().UTC().Truncate(24 * time.Hour).Add(36 * time.Hour)
	h.assess(time.Now())
	if list := h.told(); len(list) != 0 {
		t.Errorf("told at once: %q", list)
	}
	for _, now := range []time.Time{noon, noon.Add(time.Hour)} {
		h.assess(now)
		if list := h.told(); len(list) != 1 || list[0] != "late warehouse" {
			t.Fatalf("told %q", list)
		}
	}
	var found []string
	h.in(func(q *sql.Queries) error {
		of, err := endpoints.ReadTenantHealth(t.Context(), q, h.tenant, noon)
		for _, one := range of.Findings {
			found = append(found, one.Code)
		}
		return err
	})
	if len(found) != 1 || found[0] != "feed_late" {
		t.Errorf("findings %q", found)
	}
	h.ack(f, "warehouse", h.read(f, Options{Consumer: "warehouse"}).Next)
	h.assess(noon.Add(2 * time.Hour))
	var late int
	if err := h.sql.QueryRow(t.Context(), "SELECT count(*) FROM feed_consumers WHERE late_since IS NOT NULL").Scan(&late); err != nil || late != 0 {
		t.Errorf("%d consumers are late, %v", late, err)
	}
}

func TestAFeedThatNobodyReadsIsWarnedOfAndDisabled(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	f := h.feed(nil)
	now := time.Now()
	h.assess(now.Add(feed.UnreadWarned - time.Hour))
	if list := h.told(); len(list) != 0 {
		t.Errorf("warned too early: %q", list)
	}
	for range 2 {
		h.assess(now.Add(feed.UnreadWarned + time.Hour))
	}
	if list := h.told(); len(list) != 1 || list[0] != "unread" {
		t.Fatalf("warned %q", list)
	}
	for range 2 {
		h.assess(now.Add(feed.UnreadDisabled + time.Hour))
	}
	if list := h.told(); len(list) != 2 || list[1] != "unread true" {
		t.Fatalf("disabled %q", list)
	}
	h.in(func(q *sql.Queries) error {
		status, err := endpoints.Status(t.Context(), q, h.tenant, f)
		if status != endpoint.Disabled {
			t.Errorf("the feed is %s", status)
		}
		return err
	})
}
